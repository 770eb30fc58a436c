package sandbox_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/oneshot"
	"github.com/limpet-sh/limpet/sandbox"
	"github.com/limpet-sh/limpet/shell"
)

// aServer is a server on the host's loopback, which a policy may allow as
// localhost, if what is not public is allowed.
func aServer(t *testing.T) (port string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("from outside\n")) // The client says what it misses.
	}))
	t.Cleanup(server.Close)
	return strconv.Itoa(server.Listener.Addr().(*net.TCPAddr).Port)
}

// get asks the proxy for a URL, with builtins alone.
func get(url string) string {
	host := strings.TrimPrefix(url, "http://")
	host, _, _ = strings.Cut(host, "/")
	return fmt.Sprintf(`exec 3<>/dev/tcp/127.0.0.1/3128; printf 'GET %s HTTP/1.1\r\nHost: %s\r\n\r\n' >&3; cat <&3; exec 3>&-`, url, host)
}

func domains(t *testing.T, hosts ...string) (string, sandbox.Policy) {
	t.Helper()
	workspace, _ := usual(t)
	policy := sandbox.AllowDomains(workspace, hosts...)
	policy.Net.Private = true
	return workspace, policy
}

func TestAnAllowedHostIsReachedByTheProxyAndNoOtherIs(t *testing.T) {
	port, other := aServer(t), aServer(t)
	workspace, policy := domains(t, "localhost:"+port)
	where, err := sandbox.New(policy)
	require.NoError(t, err)
	var mu sync.Mutex
	var denied []string
	where.Denied = func(host string, port uint16, why string) {
		mu.Lock()
		defer mu.Unlock()
		denied = append(denied, fmt.Sprintf("%s:%d %s", host, port, why))
	}
	sh, err := shell.Start(testenv.Context(t), &shell.Options{Dir: workspace, RuntimeDir: t.TempDir(), Transport: where})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sh.Close()) })

	assert.Contains(t, says(t, sh, get("http://localhost:"+port+"/")), "from outside")
	assert.Contains(t, says(t, sh, get("http://localhost:"+other+"/")), "403 Forbidden")
	assert.Contains(t, says(t, sh, get("http://127.0.0.1:"+port+"/")), "403 Forbidden", "the address is not the name")
	mu.Lock()
	assert.Equal(t, []string{
		"localhost:" + other + " its port is not in Net.Ports",
		"127.0.0.1:" + port + " an address must be in Net.Allow itself",
	}, slices.Compact(slices.Clone(denied)))
	mu.Unlock()

	// Beside the proxy there is nothing.
	probe := fmt.Sprintf("(exec 3<>/dev/tcp/127.0.0.1/%s) 2>/dev/null && echo bites", port)
	assert.Equal(t, "bites", says(t, start(t, workspace, nil), probe), "the control")
	assert.NotContains(t, says(t, sh, probe), "bites")

	// A new bash has a proxy of its own.
	killed(t, sh, kills)
	assert.Contains(t, says(t, sh, get("http://localhost:"+port+"/")), "from outside")
	assert.Equal(t, "2", says(t, sh, "echo $$"), "nobody else stays")
}

func TestProgramsFindTheProxy(t *testing.T) {
	port := aServer(t)
	workspace, policy := domains(t, "localhost:"+port)
	sh := start(t, workspace, &policy)
	assert.Equal(t, "http://127.0.0.1:3128 http://127.0.0.1:3128", says(t, sh, "echo $http_proxy $HTTPS_PROXY"))
	assert.Equal(t, "ssh -o ProxyCommand='/run/limpet-helper __limpet_sandbox_connect__ %h %p'", says(t, sh, "echo $GIT_SSH_COMMAND"))
	through := "printf 'GET / HTTP/1.0\\r\\n\\r\\n' | /run/limpet-helper __limpet_sandbox_connect__ localhost "
	assert.Contains(t, says(t, sh, through+port), "from outside")
	assert.Contains(t, says(t, sh, through+"1; echo $?"), "localhost:1 is refused: limpet: localhost:1 is not allowed")
}

func TestAOneShotCommandHasTheProxyToo(t *testing.T) {
	port := aServer(t)
	workspace, policy := domains(t, "localhost:"+port)
	where, err := sandbox.New(policy)
	require.NoError(t, err)
	r := oneshot.New(&oneshot.Options{Dir: workspace, RuntimeDir: t.TempDir(), Transport: where})
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	res, err := r.Run(testenv.Context(t), get("http://localhost:"+port+"/"))
	require.NoError(t, err)
	assert.Contains(t, res.Stdout.String(), "from outside")
}

func TestAnAllowlistThatCannotBeMeantIsRefused(t *testing.T) {
	workspace := t.TempDir()
	for _, test := range []struct {
		name string
		edit func(*sandbox.Policy)
		says string
	}{
		{"nobody", func(p *sandbox.Policy) { p.Net.Allow = nil }, "Net.Allow is empty"},
		{"everybody", func(p *sandbox.Policy) { p.Net.Allow = []string{"*"} }, `"*" is every host`},
		{"a top-level domain", func(p *sandbox.Policy) { p.Net.Allow = []string{"*.com"} }, "top-level domain"},
		{"a URL", func(p *sandbox.Policy) { p.Net.Allow = []string{"https://example.com"} }, "has a scheme"},
		{"a list without effect", func(p *sandbox.Policy) { p.Net.Mode = sandbox.HostNet }, "Net.Mode is not DomainsNet"},
	} {
		policy := sandbox.AllowDomains(workspace, "example.com")
		test.edit(&policy)
		_, err := sandbox.New(policy)
		require.ErrorIs(t, err, sandbox.ErrNoPolicy, test.name)
		assert.ErrorContains(t, err, test.says, test.name)
	}
}

func TestAChildMayReachLessAndNotMore(t *testing.T) {
	workspace := t.TempDir()
	parent := sandbox.AllowDomains(workspace, "*.example.com")
	parent.Net.Deny = []string{"secret.example.com"}
	child, err := parent.Narrow(sandbox.AllowDomains(workspace, "a.example.com"))
	require.NoError(t, err)
	assert.Equal(t, []string{"secret.example.com"}, child.Net.Deny)
	for _, wider := range []sandbox.Policy{
		sandbox.AllowDomains(workspace, "a.example.com", "example.org"),
		sandbox.AllowDomains(workspace, "a.example.com:22"),
		sandbox.HostNetwork(workspace),
	} {
		_, err := parent.Narrow(wider)
		require.ErrorIs(t, err, sandbox.ErrWiden)
	}
	_, err = parent.Narrow(sandbox.WorkspaceWrite(workspace))
	require.NoError(t, err)
	_, err = sandbox.WorkspaceWrite(workspace).Narrow(parent)
	require.ErrorIs(t, err, sandbox.ErrWiden)
}
