package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// certify makes a certificate, of itself, and returns its files.
func certify(t *testing.T, names []string, ips []net.IP, until time.Time) (cert, key string, roots *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "limpet"}, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: until,
		DNSNames: names, IPAddresses: ips, KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	dir := testenv.TempDir(t)
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	roots = x509.NewCertPool()
	roots.AddCert(parsed)
	return cert, key, roots
}

// With a certificate the page is served by https at any address, under the names of the certificate and no others, WebSockets too.
func TestServeByACertificate(t *testing.T) {
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	dir := testenv.TempDir(t)
	t.Setenv("XDG_STATE_HOME", filepath.Join(dir, "state"))
	cert, key, roots := certify(t, []string{"build.example", "*.wild.example"}, nil, time.Now().Add(time.Hour))
	cmd := exec.Command("limpet", "serve", "--listen", "0.0.0.0:0", "--tls-cert", cert, "--tls-key", key)
	at, err := url.Parse(strings.TrimSpace(linkOf(t, cmd)))
	require.NoError(t, err)
	assert.Equal(t, "https", at.Scheme)
	assert.Equal(t, "build.example", at.Hostname())

	// All names lead here.
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	var dialer net.Dialer
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, network, "127.0.0.1:"+at.Port())
	}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	get := func(host, origin string) (int, http.Header) {
		r, err := http.NewRequestWithContext(testenv.Context(t), http.MethodGet, "https://"+host+":"+at.Port()+"/api/sessions", nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+at.Fragment)
		r.Header.Set("Origin", origin)
		answer, err := client.Do(r)
		require.NoError(t, err)
		defer answer.Body.Close() // It is read.
		_, err = io.ReadAll(answer.Body)
		require.NoError(t, err)
		return answer.StatusCode, answer.Header
	}
	own := "https://" + at.Host
	code, header := get("build.example", own)
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, header.Get("Content-Security-Policy"), "connect-src 'self' wss://"+at.Host+";")
	for origin, want := range map[string]int{"http://" + at.Host: http.StatusForbidden, "https://other.example": http.StatusForbidden, own: http.StatusOK} {
		code, _ := get("build.example", origin)
		assert.Equal(t, want, code, origin)
	}
	transport.TLSClientConfig.ServerName = "build.example" // A name of another site that leads here.
	transport.CloseIdleConnections()
	for _, host := range []string{"rebound.example", "x.wild.example", "192.0.2.1"} {
		code, _ := get(host, "https://"+host+":"+at.Port())
		assert.Equal(t, http.StatusForbidden, code, host)
	}

	ws, _, err := websocket.Dial(testenv.Context(t), "wss://"+at.Host+"/api/terminal", &websocket.DialOptions{HTTPClient: client, HTTPHeader: http.Header{"Origin": {own}}})
	require.NoError(t, err)
	require.NoError(t, ws.Write(testenv.Context(t), websocket.MessageText, []byte(`{"token": "wrong"}`)))
	_, _, err = ws.Read(testenv.Context(t))
	assert.Equal(t, websocket.StatusCode(4401), websocket.CloseStatus(err), "%v", err)

	plain, err := http.Get("http://127.0.0.1:" + at.Port() + "/")
	if err == nil {
		assert.Equal(t, http.StatusBadRequest, plain.StatusCode)
		require.NoError(t, plain.Body.Close())
	}
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	_ = cmd.Wait() // Its exit code is looked at.
	assert.Equal(t, codeSignal+int(syscall.SIGTERM), cmd.ProcessState.ExitCode())
}

func TestServeRefusesACertificateThatIsOfNoUse(t *testing.T) {
	dir := testenv.TempDir(t)
	t.Setenv("XDG_STATE_HOME", dir)
	cert, key, _ := certify(t, []string{"build.example"}, nil, time.Now().Add(time.Hour))
	old, oldKey, _ := certify(t, []string{"build.example"}, nil, time.Now().Add(-time.Hour))
	wild, wildKey, _ := certify(t, []string{"*.example"}, nil, time.Now().Add(time.Hour))
	open := filepath.Join(dir, "open.pem")
	b, err := os.ReadFile(key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(open, b, 0o644))
	for text, args := range map[string][]string{
		"go together":                         {"--tls-cert", cert},
		"others can read it: chmod 600":       {"--tls-cert", cert, "--tls-key", open},
		"private key does not match":          {"--tls-cert", cert, "--tls-key", oldKey},
		"it was valid until":                  {"--tls-cert", old, "--tls-key", oldKey},
		"is for no name or address":           {"--tls-cert", wild, "--tls-key", wildKey},
		"no such file":                        {"--tls-cert", cert, "--tls-key", dir + "/none"},
		"is no address of this machine, as 1": {"--tls-cert", cert, "--tls-key", key, "--listen", "build.example:0"},
	} {
		out, code := limpetIn(t, dir, append([]string{"serve"}, args...)...)
		assert.NotZero(t, code)
		assert.Contains(t, out, text)
	}
}
