package mask

import (
	"strings"

	"github.com/limpet-sh/limpet/internal/environ"
	"github.com/limpet-sh/limpet/internal/lazyregexp"
)

// token is a form of tokens that begin with a prefix that nothing else has.
func token(name, re string, any ...string) form {
	return form{name: name, re: lazyregexp.New(`(?:^|[^0-9A-Za-z_])(` + re + `)`), any: any}
}

// x is a letter or a digit, so often: what most tokens are made of. The examples are made of it, and are nobody's.
func x(n int) string { return strings.Repeat("a1B2c3D4", n/8+1)[:n] }

// forms are those that are known. Prefixes are as those who issue the tokens document them.
var forms = []form{
	token("GitHub token", `gh[pousr]_[0-9A-Za-z]{36,}|github_pat_[0-9A-Za-z_]{22,}`, "gh", "github_pat_").
		found("ghp_"+x(36), "token: gho_"+x(36), "github_pat_"+x(22)+"_"+x(59)).
		not("ghp_short", "high_"+x(36), "the prefix ghp_ is for personal tokens"),
	token("GitLab token", `gl(?:pat|dt|rt|ptt|ft|soat|cbt|imt|agent)-[0-9A-Za-z_.-]{20,}`, "gl").
		found("glpat-"+x(20), "glrt-"+x(20)).
		not("glpat-x", "angle-"+x(20)),
	token("Slack token", `xox[abeoprs]-(?:[0-9]+-)*[0-9A-Za-z-]{10,}|xapp-[0-9]-[0-9A-Za-z-]{20,}`, "xox", "xapp-").
		found("xoxb-123456789012-"+x(24), "xapp-1-"+x(30)).
		not("xoxo-hugs", "xox"),
	token("Slack webhook", `https://hooks\.slack\.com/(?:services|workflows|triggers)/[0-9A-Za-z/_-]{20,}`, "hooks.slack.com").
		found("curl https://hooks.slack.com/services/T0000/B0000/" + x(24)).
		not("https://hooks.slack.com/services/"),
	token("AWS key", `(?:AKIA|ASIA)[0-9A-Z]{16}\b`, "AKIA", "ASIA").
		found("AKIAABCDEFGHIJKLMNOP", "id=ASIAABCDEFGHIJKL0123").
		not("AKIA", "EURASIAABCDEFGHIJKLMNOPQ", "ASIApacific"),
	token("Google API key", `AIza[0-9A-Za-z_-]{35}`, "AIza").
		found("AIza" + x(35)).
		not("AIza" + x(10)),
	token("Google OAuth secret", `GOCSPX-[0-9A-Za-z_-]{28}|ya29\.[0-9A-Za-z_-]{30,}`, "GOCSPX-", "ya29.").
		found("GOCSPX-"+x(28), "ya29."+x(60)).
		not("ya29.short"),
	token("API key", `sk-(?:ant-|proj-|svcacct-|admin-|or-v1-)[0-9A-Za-z_-]{20,}|sk-[0-9A-Za-z]{40,64}\b`, "sk-").
		found("sk-ant-api03-"+x(60), "sk-proj-"+x(48), "sk-"+x(48)).
		not("sk-learn", "task-"+x(48), "risk-proj-"+x(48), "sk-proj-x"),
	token("Stripe key", `(?:sk|rk)_(?:live|test)_[0-9A-Za-z]{16,}|whsec_[0-9A-Za-z+/=]{24,}`, "_live_", "_test_", "whsec_").
		found("sk_live_"+x(24), "rk_test_"+x(24), "whsec_"+x(32)).
		not("disk_test_results", "pk_live_"+x(24), "sk_test_x"),
	token("npm token", `npm_[0-9A-Za-z]{36}\b`, "npm_").
		found("//localhost/:_authToken=npm_"+x(36)).
		not("npm_config_offline", "npm_package_"+x(36)),
	token("PyPI token", `pypi-AgE[0-9A-Za-z_-]{50,}`, "pypi-AgE").
		found("pypi-AgEIcHlwaS5vcmc" + x(60)).
		not("pypi-server"),
	token("Docker token", `dckr_(?:pat|oat)_[0-9A-Za-z_-]{20,}`, "dckr_").
		found("dckr_pat_" + x(27)).
		not("dckr_pat_"),
	token("Hugging Face token", `hf_[A-Za-z0-9]{34,40}\b`, "hf_").
		found("hf_"+x(34)).
		not("hf_transfer", "shelf_"+x(34)),
	token("DigitalOcean token", `do[por]_v1_[0-9a-f]{64}`, "_v1_").
		found("dop_v1_" + strings.Repeat("0a", 32)).
		not("dop_v1_x"),
	token("SendGrid key", `SG\.[0-9A-Za-z_-]{22}\.[0-9A-Za-z_-]{43}`, "SG.").
		found("SG." + x(22) + "." + x(43)).
		not("SG.x.y"),
	token("Telegram token", `[0-9]{8,10}:AA[0-9A-Za-z_-]{33}\b`, ":AA").
		found("bot 123456789:AA"+x(33)).
		not("12:AA", "10:20:30:AA:BB:CC"),
	token("age key", `AGE-SECRET-KEY-1[0-9A-Z]{58}`, "AGE-SECRET-KEY-1").
		found("AGE-SECRET-KEY-1" + strings.Repeat("QP", 29)).
		not("AGE-SECRET-KEY-1"),
	token("Vault token", `hv[sbr]\.[0-9A-Za-z_-]{24,}`, "hvs.", "hvb.", "hvr.").
		found("hvs." + x(24)).
		not("hvs.com"),
	token("JSON Web Token", `eyJ[0-9A-Za-z_-]{8,}\.eyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]{8,}`, "eyJ").
		found("Bearer eyJ"+x(20)+".eyJ"+x(30)+"."+x(40)).
		not("eyJ"+x(20), "eyJ"+x(20)+"."+x(30)),

	// The end of one whose beginning was cut off counts, and a beginning without an end.
	form{
		name: "private key",
		re:   lazyregexp.New(`(?s)-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----(.+?)(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\z)`),
		any:  []string{"PRIVATE KEY"},
	}.
		found("-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\nBBBB\n-----END OPENSSH PRIVATE KEY-----", "-----BEGIN RSA PRIVATE KEY-----\nAAAA",
			`{"private_key": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"}`, "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\nAAAA\n-----END PGP PRIVATE KEY BLOCK-----").
		not("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----", "no PRIVATE KEY here"),
	form{
		name: "private key",
		re:   lazyregexp.New(`\A((?:[0-9A-Za-z+/=]{0,76}(?:\r?\n|\\n))+)-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----`),
		any:  []string{"PRIVATE KEY"},
	}.
		found("BBBB\nCCCC\n-----END RSA PRIVATE KEY-----").
		not("-----END RSA PRIVATE KEY-----"),

	form{
		name: "password in a URL",
		re:   lazyregexp.New(`\b[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^\s/?#:@'"<>]{0,}:([^\s/?#@'"<>]+)@[^\s/?#@'"<>]`),
		any:  []string{"://"},
	}.
		found("postgres://me:hunter2@db/x", "https://user:abc%40d@example.com/x.git", "redis://:pw@localhost").
		not("https://example.com:8080/a@b", "ssh://git@example.com:22/x", "http://a:80/b@c", "see https://a.b: mail@c.d"),
	form{
		name: "authorization",
		re:   lazyregexp.New(`(?i)\b(?:proxy-)?authorization["']?\s{0,4}[:=]\s{0,4}["']?(?:(?:bearer|basic|token|digest|apikey)\s{1,4}([0-9A-Za-z._~+/=:-]{8,})|([0-9A-Za-z._~+/=-]{16,}))`),
		any:  []string{"uthorization", "UTHORIZATION"},
	}.
		found("Authorization: Bearer abcdef0123", `-H "authorization: Basic dXNlcjpwYXNz"`, "Proxy-Authorization: dXNlcjpwYXNzd29yZA==").
		not("Authorization: required", "authorization failed: try again", "Authorization:"),
	// NAME=value, NAME="a value", and "NAME": "value".
	form{
		name: ofVariable,
		re: lazyregexp.New(`(?:^|[^0-9A-Za-z_$])([A-Z][0-9A-Z_]{2,})` +
			`(?:=(?:"((?:[^"\\$\n]|\\.)+)"|'([^'\n]+)'|([^\s"'$=<>;&|(){}\[\],` + "`" + `*.][^\s"';&|<>(){},` + "`" + `]{2,}))` +
			`|["']\s{0,4}:\s{0,4}(?:"((?:[^"\\\n]|\\.)+)"|'([^'\n]+)'))`),
		is: environ.Secret,
	}.
		found("API_KEY=abc123", "export DB_PASSWORD='a b'", `MY_TOKEN="x y"`, `{"CLIENT_SECRET": "ab c"}`, "docker run -e AWS_SECRET_ACCESS_KEY=abc/def+g img").
		not("TOKEN=$(cat file)", "TOKEN=", "API_KEY=<your key>", "KEYBOARD=us", `"API_KEY": null`, "echo $TOKEN", "GITHUB_TOKEN=${X}", "if TOKEN == x", `TOKEN="$OTHER"`, "MAX_TOKENS=4096"),
}

const ofVariable = "value of a variable"

// found and not add examples.
func (f form) found(examples ...string) form { f.examples = append(f.examples, examples...); return f }
func (f form) not(others ...string) form     { f.others = append(f.others, others...); return f }
