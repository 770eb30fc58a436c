package egress_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/egress"
)

func TestAnEntryThatCannotBeMeantIsAnErrorWithItsRemedy(t *testing.T) {
	for entry, want := range map[string]string{
		"":                         "is empty; remove it",
		"  ":                       "is empty; remove it",
		"*":                        "every host",
		"*.":                       "every host",
		"*:443":                    "every host",
		"*.com":                    `top-level domain; name a domain in it, such as "*.example.com"`,
		"*.com.":                   "top-level domain",
		"*.com:443":                "top-level domain",
		"*.localhost":              "top-level domain",
		"*.*.example.com":          "wrong place",
		"a.*.com":                  "wrong place",
		"*example.com":             "wrong place",
		"exam*.com":                "wrong place",
		"*.192.0.2.1":              "wrong place",
		"https://example.com":      "scheme; leave it out",
		"example.com/":             `has a "/"; list whole hosts`,
		"example.com/path":         `has a "/"`,
		"10.0.0.0/8":               `has a "/"; list whole hosts, neither paths nor networks`,
		"user@example.com":         "has '@'",
		"example.com ":             "has ' '",
		" example.com":             "has ' '",
		"exa mple.com":             "has ' '",
		"example.com\n":            `has '\n'`,
		"evil\x00.example.com":     `has '\x00'`,
		"example%2ecom":            "has '%'",
		"example.com?x":            "has '?'",
		"example.com,example.net":  "has ','",
		"bücher.example":           "punycode",
		"example。com":              "punycode",
		"exam\u212aple.com":        "punycode", // lower case for it is k
		"example.com:":             "1 to 65535",
		"example.com:0":            "1 to 65535",
		"example.com:65536":        "1 to 65535",
		"example.com:+80":          "1 to 65535",
		"example.com:http":         "1 to 65535",
		"example.com:80:80":        "1 to 65535",
		"example.com:80 ":          "1 to 65535",
		"[example.com]:80":         "brackets",
		"[192.0.2.1]:80":           "brackets",
		"[2606:2800::1":            "brackets",
		"[2606:2800::1]x":          "1 to 65535",
		"[2606:2800::1%eth0]:80":   "has '%'",
		"2606:2800::1::2":          "1 to 65535",
		".example.com":             "labels",
		"example..com":             "labels",
		"-example.com":             "labels",
		"example-.com":             "labels",
		".":                        "is empty",
		"example.com..":            "labels",
		"127.1":                    "four decimal numbers",
		"0x7f.0.0.1":               "four decimal numbers",
		"0x7f000001":               "four decimal numbers",
		"0177.0.0.1":               "four decimal numbers",
		"2130706433":               "four decimal numbers",
		"1.2.3.4.5":                "four decimal numbers",
		"256.0.0.1":                "four decimal numbers",
		"example.0x":               "four decimal numbers",
		"10.1.2.3":                 "is a private address; set Net.Private",
		"[::1]:80":                 "is a loopback address; set Net.Private",
		"::ffff:127.0.0.1":         "is a loopback address",
		strings.Repeat("a", 64):    "labels",
		strings.Repeat("abc.", 70): "longer",
	} {
		err := egress.Rules{Allow: []string{"example.org", entry}}.Validate()
		if assert.Error(t, err, "%q", entry) {
			assert.Contains(t, err.Error(), want, "%q", entry)
			assert.True(t, strings.HasPrefix(err.Error(), "Net.Allow: "), err.Error())
		}
		_, err = egress.New(egress.Rules{Allow: []string{entry}}, nil)
		assert.Error(t, err, "%q", entry)
	}
	assert.ErrorContains(t, egress.Rules{Deny: []string{"*.com"}}.Validate(), `Net.Deny: "*.com" is a whole`)
	assert.ErrorContains(t, egress.Rules{Ports: []uint16{80, 0}}.Validate(), "Net.Ports: 0")
}

func TestEntriesThatAreFine(t *testing.T) {
	assert.NoError(t, egress.Rules{}.Validate(), "nothing is allowed")
	assert.NoError(t, egress.Rules{Allow: []string{"10.0.0.1", "[::1]:80", "169.254.169.254"}, Private: true}.Validate())
	assert.NoError(t, egress.Rules{Deny: []string{"10.0.0.1"}}.Validate(), "to deny it takes no Private")
	for _, entry := range []string{
		"example.com", "EXAMPLE.com.", "*.example.com", "*.example.com.", "*.example.com:8443", "example.com:1",
		"example.com:65535", "xn--bcher-kva.example", "_dmarc.example.com", "my_bucket.example.com", "registry", "localhost",
		"a--b.example", "1.example", "0x7f.example", "8.8.8.8", "8.8.8.8:53", "2606:2800::1", "[2606:2800::1]", "[2606:2800::1]:443",
		"[::ffff:8.8.8.8]:53", strings.TrimSuffix(strings.Repeat("a.", 127), "."), strings.Repeat("a", 63) + ".example",
	} {
		assert.NoError(t, egress.Rules{Allow: []string{entry}}.Validate(), entry)
	}
}

func TestRulesDecideByHostAndPort(t *testing.T) {
	for _, test := range []struct {
		rules egress.Rules
		host  string
		port  uint16
		want  bool
	}{
		{egress.Rules{}, "ok.test", 80, false},
		{allows(), "ok.test", 80, true},
		{allows(), "ok.test", 443, true},
		{allows(), "ok.test", 22, false},
		{allows(), "ok.test", 0, false},
		{allows(), "OK.Test.", 80, true},
		{allows(), "a.ok.test", 80, true},
		{allows(), "a.b.ok.test", 80, true},
		{allows(), "badok.test", 80, false},
		{allows(), "ok.test.evil.test", 80, false},
		{allows(), "test", 80, false},
		{egress.Rules{Allow: []string{"ok.test"}}, "a.ok.test", 80, false},
		{egress.Rules{Allow: []string{"*.ok.test"}}, "ok.test", 80, false},
		{egress.Rules{Allow: []string{"*.ok.test"}}, "badok.test", 80, false},
		{egress.Rules{Allow: []string{"*.OK.test."}}, "A.ok.TEST", 80, true},
		{egress.Rules{Allow: []string{"ok.test:8443"}}, "ok.test", 8443, true},
		{egress.Rules{Allow: []string{"ok.test:8443"}}, "ok.test", 80, false},
		{egress.Rules{Allow: []string{"*.ok.test:8443"}}, "a.ok.test", 8443, true},
		{egress.Rules{Allow: []string{"*.ok.test:8443"}}, "a.ok.test", 443, false},
		{egress.Rules{Allow: []string{"ok.test:8443", "ok.test"}}, "ok.test", 80, true},
		{egress.Rules{Allow: []string{"ok.test"}, Ports: []uint16{22}}, "ok.test", 22, true},
		{egress.Rules{Allow: []string{"ok.test"}, Ports: []uint16{22}}, "ok.test", 80, false},
		{egress.Rules{Allow: []string{"ok.test"}, Ports: []uint16{}}, "ok.test", 80, false},
		{egress.Rules{Allow: []string{"ok.test:80"}, Ports: []uint16{}}, "ok.test", 80, true},
		{egress.Rules{Allow: []string{"*.ok.test"}, Deny: []string{"a.ok.test"}}, "a.ok.test", 80, false},
		{egress.Rules{Allow: []string{"*.ok.test"}, Deny: []string{"A.ok.test."}}, "a.ok.test", 80, false},
		{egress.Rules{Allow: []string{"*.ok.test"}, Deny: []string{"a.ok.test"}}, "b.ok.test", 80, true},
		{egress.Rules{Allow: []string{"a.ok.test:80"}, Deny: []string{"*.ok.test"}}, "a.ok.test", 80, false},
		{egress.Rules{Allow: []string{"ok.test"}, Deny: []string{"ok.test:443"}}, "ok.test", 80, true},
		{egress.Rules{Allow: []string{"ok.test"}, Deny: []string{"ok.test:443"}}, "ok.test", 443, false},
		{egress.Rules{Allow: []string{"ok.test"}, Deny: []string{public4}}, "ok.test", 80, false},
		{egress.Rules{Allow: []string{"ok.test"}, Deny: []string{public4 + ":443"}}, "ok.test", 80, true},
	} {
		w := newWorld(t, test.rules)
		w.resolve("ok.test", public4)
		want := byte(notAllowed)
		if test.want {
			want = refused
		}
		assert.Equal(t, want, w.code(socksName(test.host, test.port)), "%+v", test)
		if !test.want {
			assert.Empty(t, w.take(&w.dialed), "%+v", test)
		}
	}
}

func TestRulesAreCopied(t *testing.T) {
	rules := allows()
	rules.Ports = []uint16{80}
	w := newWorld(t, rules)
	rules.Allow[0], rules.Allow[1], rules.Ports[0] = "evil.test", "*.evil.test", 22
	assert.EqualValues(t, refused, w.code(socksName("a.ok.test", 80)))
	assert.EqualValues(t, notAllowed, w.code(socksName("a.evil.test", 80)))
	assert.EqualValues(t, notAllowed, w.code(socksName("a.ok.test", 22)))
}

func TestAChildMayOnlyBeNarrower(t *testing.T) {
	parent := egress.Rules{
		Allow: []string{"example.com", "*.example.com", "git.example.org:22", "*.example.net:8443", "8.8.8.8"},
		Deny:  []string{"secret.example.com", "*.bad.example.com", "example.com:81"},
		Ports: []uint16{80, 443, 8080},
	}
	all := parent.Deny
	for _, child := range []egress.Rules{
		parent,
		{Deny: all},
		{Deny: all, Allow: []string{"EXAMPLE.com."}},
		{Deny: all, Allow: []string{"example.com:8080"}},
		{Deny: all, Allow: []string{"a.example.com", "*.a.example.com", "*.example.com:443"}},
		{Deny: all, Allow: []string{"git.example.org:22", "a.example.net:8443", "*.a.example.net:8443"}},
		{Deny: all, Allow: []string{"8.8.8.8"}, Ports: []uint16{443}},
		{Deny: append([]string{"example.com"}, all...), Ports: []uint16{}},
		{Deny: []string{"*.example.com", "example.com"}},
	} {
		assert.NoError(t, child.Narrower(parent), "%+v", child)
	}
	for want, child := range map[string]egress.Rules{
		`Net.Allow: "example.org" is not allowed by the parent`:        {Deny: all, Allow: []string{"example.org"}},
		`Net.Allow: "*.example.org"`:                                   {Deny: all, Allow: []string{"*.example.org"}},
		`Net.Allow: "badexample.com"`:                                  {Deny: all, Allow: []string{"badexample.com"}},
		`Net.Allow: "example.com:22"`:                                  {Deny: all, Allow: []string{"example.com:22"}},
		`Net.Allow: "git.example.org" is`:                              {Deny: all, Allow: []string{"git.example.org"}},
		`Net.Allow: "git.example.org:80"`:                              {Deny: all, Allow: []string{"git.example.org:80"}},
		`Net.Allow: "example.net:8443"`:                                {Deny: all, Allow: []string{"example.net:8443"}},
		`Net.Allow: "8.8.4.4"`:                                         {Deny: all, Allow: []string{"8.8.4.4"}},
		`Net.Deny: "secret.example.com" of the parent is missing`:      {Deny: all[1:]},
		`Net.Deny: "*.bad.example.com"`:                                {Deny: []string{all[0], all[2], "bad.example.com"}},
		`Net.Deny: "example.com:81"`:                                   {Deny: []string{all[0], all[1], "example.com:80"}},
		`Net.Deny: "secret.example.com" of`:                            {Deny: []string{"secret.example.com:443", all[1], all[2]}},
		"Net.Ports: 22 is none of the parent's":                        {Deny: all, Ports: []uint16{80, 22}},
		"Net.Private is set":                                           {Deny: all, Private: true},
		"Net.SkipSNI is set":                                           {Deny: all, SkipSNI: true},
		`Net.Allow: "*.com" is a whole`:                                {Deny: all, Allow: []string{"*.com"}},
		`Net.Allow: "example.com:8081" is not allowed by the parent`:   {Deny: all, Allow: []string{"example.com:8081"}, Ports: []uint16{}},
		`Net.Allow: "*.example.net" is not allowed by the parent`:      {Deny: all, Allow: []string{"*.example.net"}, Ports: []uint16{80}},
		`Net.Allow: "xexample.com" is not allowed by the parent`:       {Deny: all, Allow: []string{"xexample.com"}},
		`Net.Allow: "*.xexample.com" is not allowed by the parent`:     {Deny: all, Allow: []string{"*.xexample.com"}},
		`Net.Allow: "example.com.evil" is not allowed by the parent`:   {Deny: all, Allow: []string{"example.com.evil"}},
		`Net.Allow: "*.example.com:8444" is not allowed by the parent`: {Deny: all, Allow: []string{"*.example.com:8444"}},
	} {
		assert.ErrorContains(t, child.Narrower(parent), want, "%+v", child)
	}
	assert.ErrorContains(t, egress.Rules{}.Narrower(egress.Rules{Ports: []uint16{443}}), "Net.Ports: 80")
	assert.ErrorContains(t, egress.Rules{}.Narrower(egress.Rules{Allow: []string{"*"}}), "the parent's Net.Allow")
	wide := egress.Rules{Private: true, SkipSNI: true}
	assert.NoError(t, wide.Narrower(wide))
	assert.NoError(t, egress.Rules{}.Narrower(wide))
}

func TestOptionsAreChecked(t *testing.T) {
	for want, o := range map[string]egress.Options{
		"HeaderTimeout": {HeaderTimeout: -1},
		"DialTimeout":   {DialTimeout: -1},
		"IdleTimeout":   {IdleTimeout: -1},
		"MaxConns":      {MaxConns: -1},
	} {
		_, err := egress.New(egress.Rules{}, &o)
		assert.ErrorContains(t, err, want)
	}
	p, err := egress.New(egress.Rules{}, nil)
	require.NoError(t, err)
	assert.NoError(t, p.Close())
}
