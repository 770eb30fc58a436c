package egress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var plainHost = regexp.MustCompile(`^[a-z0-9_.:-]{1,253}$`)

// What is matched by the rules is what is looked up, and means the same to both.
func FuzzHost(f *testing.F) {
	for _, host := range []string{
		"ok.test", "A.ok.test.", "evil\x00.ok.test", "0x7f.1", "8.8.8.8", "::ffff:8.8.8.8", "fe80::1%eth0", "[::1]", "a.\u212a.test", "a..ok.test", "08.1", "1e3",
	} {
		f.Add(host)
	}
	rules, err := Rules{Allow: []string{"*.ok.test", "8.8.8.8"}}.compile()
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, host string) {
		target, err := newTarget(host, 80)
		if err != nil {
			return
		}
		assert.Regexp(t, plainHost, target.host)
		again, err := newTarget(target.host, 80)
		assert.NoError(t, err)
		assert.Equal(t, target, again, "what is normal stays so")
		if _, err := netip.ParseAddr(target.host); err != nil {
			last := target.host[strings.LastIndexByte(target.host, '.')+1:]
			assert.NotRegexp(t, `^([0-9]+|0x[0-9a-f]*)$`, last, "nobody may take it for an address")
		} else {
			assert.True(t, target.addr.IsValid())
		}
		if rules.refuses(target) == "" {
			name := strings.TrimSuffix(strings.ToLower(host), ".")
			assert.True(t, strings.HasSuffix(name, ".ok.test") || target.addr == netip.MustParseAddr("8.8.8.8"), "%q", host)
		}
	})
}

// An entry that is accepted is printed as one that means the same.
func FuzzPattern(f *testing.F) {
	for _, entry := range []string{"ok.test", "*.ok.test:80", "[2606:2800::1]:443", "2606:2800::1", "8.8.8.8:53", "*.com", "*", "https://ok.test/"} {
		f.Add(entry)
	}
	f.Fuzz(func(t *testing.T, entry string) {
		p, err := parsePattern(entry)
		if err != nil {
			return
		}
		again, err := parsePattern(p.String())
		require.NoError(t, err)
		assert.Equal(t, p, again)
		assert.True(t, p.covers(p))
		assert.Equal(t, !p.wild, p.matches(p.host))
	})
}

func FuzzSOCKS(f *testing.F) {
	f.Add([]byte("\x05\x01\x00\x05\x01\x00\x03\x07ok.test\x00\x50"))
	f.Add([]byte("\x05\x02\x00\x02\x05\x01\x00\x01\x08\x08\x08\x08\x01\xbb"))
	f.Add([]byte("\x05\x01\x00\x05\x01\x00\x04\x26\x06\x28\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00\x50"))
	f.Add([]byte("\x05\xff\x00\x05\x02\x00\x03\xff"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		r := bytes.NewReader(sent)
		if ok, err := socksGreeting(r); err != nil || !ok {
			return
		}
		before := r.Len()
		host, port, err := socksRequest(r)
		if err != nil {
			return
		}
		used := sent[len(sent)-before : len(sent)-r.Len()]
		assert.Equal(t, []byte{5, 1, 0}, used[:3])
		assert.Equal(t, []byte{byte(port >> 8), byte(port)}, used[len(used)-2:])
		switch used[3] {
		case socksDomain:
			assert.Equal(t, string(used[5:len(used)-2]), host)
		default:
			addr, ok := netip.AddrFromSlice(used[4 : len(used)-2])
			assert.True(t, ok)
			assert.Equal(t, addr.String(), host)
		}
	})
}

func FuzzClientHello(f *testing.F) {
	for _, name := range []string{"ok.test", ""} {
		f.Add(helloOf(f, name))
	}
	f.Add([]byte("\x16\x03\x01\x00\x04\x01\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		r := bytes.NewReader(sent)
		hello, _, err := clientHello(nil, r)
		if err == nil {
			assert.True(t, bytes.HasPrefix(sent, hello), "what is passed on is what was sent")
			assert.Equal(t, len(sent), len(hello)+r.Len(), "all of it")
		}
	})
}

func TestTheServerNameOfAClientHelloIsRead(t *testing.T) {
	sent := append(helloOf(t, "ok.test"), "early"...)
	r := bytes.NewReader(sent)
	hello, name, err := clientHello(nil, r)
	require.NoError(t, err)
	assert.Equal(t, "ok.test", name)
	rest, err := io.ReadAll(r)
	require.NoError(t, err)
	assert.Equal(t, sent, append(hello, rest...))

	_, _, err = clientHello(nil, io.MultiReader(strings.NewReader("\x16\x03\x01\x40\x00\x01\x00\xff\xff"), zeros{}))
	assert.Error(t, err, "what has no end is not read for ever")
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

// helloOf is what a client of crypto/tls sends first.
func helloOf(t testing.TB, name string) []byte {
	var sent recorderOfWrites
	err := tls.Client(&sent, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake()
	require.ErrorIs(t, err, io.EOF)
	return sent.Bytes()
}

// recorderOfWrites is a connection to somebody who hangs up.
type recorderOfWrites struct {
	net.Conn
	bytes.Buffer
}

func (r *recorderOfWrites) Write(b []byte) (int, error) { return r.Buffer.Write(b) }
func (r *recorderOfWrites) Read([]byte) (int, error)    { return 0, io.EOF }
func (r *recorderOfWrites) Close() error                { return nil }

// Whatever a client sends, only ok.test is dialed, and it gets one request that
// is for it.
func FuzzClient(f *testing.F) {
	for _, sent := range []string{
		"GET http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n",
		"GET http://evil.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n",
		"GET http://ok.test@evil.test/ HTTP/1.1\r\nHost: ok.test\r\n\r\n",
		"GET http://ok.test:80/\x00 HTTP/1.1\r\nHost: ok.test\r\nConnection: host\r\n\r\n",
		"POST http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
		"POST http://ok.test/ HTTP/1.1\r\nHost: ok.test\r\nX: a\r\n b\rHost: evil.test\r\nContent-Length: 3\r\n\r\nabcGET / HTTP/1.1\r\nHost: evil.test\r\n\r\n",
		"CONNECT ok.test:80 HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nHost: ok.test\r\n\r\n",
		"\x05\x01\x00\x05\x01\x00\x03\x07ok.test\x00\x50tunnel",
		"\x05\x01\x00\x05\x01\x00\x03\x0cevil\x00.ok.test\x00\x50",
		"\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50",
	} {
		f.Add([]byte(sent))
	}
	f.Fuzz(func(t *testing.T, sent []byte) {
		server := &canned{answer: strings.NewReader("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")}
		p, err := New(Rules{Allow: []string{"ok.test", "*.ok.test"}, Deny: []string{"evil.ok.test"}}, &Options{
			Resolver: oneName{t},
			Dial: func(_ context.Context, _, address string) (net.Conn, error) {
				assert.Contains(t, []string{"8.8.8.8:80", "8.8.8.8:443"}, address)
				return server, nil
			},
		})
		require.NoError(t, err)
		client := &canned{answer: bytes.NewReader(sent)}
		newClient(p, client).serve()
		require.NoError(t, p.Close())

		plain := len(sent) > 0 && sent[0] != 5 && !bytes.HasPrefix(sent, []byte("CONNECT "))
		if server.got.Len() == 0 || !plain {
			return
		}
		r := bufio.NewReader(&server.got)
		req, err := http.ReadRequest(r)
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return // It broke off.
		}
		require.NoError(t, err)
		assert.Regexp(t, `(?i)^([a-z0-9_.-]+\.)?ok\.test(:443)?$`, req.Host)
		assert.True(t, strings.HasPrefix(req.RequestURI, "/") || req.RequestURI == "*", req.RequestURI)
		for name := range req.Header {
			assert.False(t, strings.HasPrefix(name, "Proxy-"), name)
		}
		if _, err = io.Copy(io.Discard, req.Body); err != nil {
			return // It broke off.
		}
		rest, err := io.ReadAll(r)
		require.NoError(t, err)
		assert.Empty(t, rest, "a second request")
	})
}

// oneName has no host but those that are allowed.
type oneName struct{ t *testing.T }

func (o oneName) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	assert.Regexp(o.t, `^([a-z0-9_.-]+\.)?ok\.test$`, host)
	assert.NotEqual(o.t, "evil.ok.test", host)
	return []netip.Addr{netip.MustParseAddr("8.8.8.8")}, nil
}

// canned is a connection to somebody who says the same in any case.
type canned struct {
	net.Conn
	answer io.Reader
	got    bytes.Buffer
}

func (c *canned) Read(b []byte) (int, error)      { return c.answer.Read(b) }
func (c *canned) Write(b []byte) (int, error)     { return c.got.Write(b) }
func (c *canned) SetDeadline(time.Time) error     { return nil }
func (c *canned) CloseWrite() error               { return nil }
func (c *canned) Close() error                    { return nil }
func (c *canned) SetReadDeadline(time.Time) error { return nil }
