package host_test

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/pipe"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// liar is a sh that answers as it likes. It has the mark from what it is sent.
func liar(t *testing.T, script string) string {
	t.Helper()
	file := filepath.Join(testenv.TempDir(t), "liar.sh")
	const learn = `while read -r line; do
	case $line in
	m=*) m=$(eval "$line"; echo "$m") ;;
	'limpet_probe <'*) break ;;
	esac
done
`
	require.NoError(t, os.WriteFile(file, []byte(learn+script), 0o600))
	return "exec:bash " + file
}

// short are times in which a connection is given up soon.
var short = pipe.Times{Ping: 100 * time.Millisecond, Silence: 2 * time.Second}

// boundedHeap fails a test, which is not parallel, if its heap has grown much at any moment until its subtests are over.
func boundedHeap(t *testing.T) {
	t.Helper()
	const most = 16 << 20 // A few rows keep half a MiB each, and what the collector has not seen yet is counted: 4 MiB as a rule.
	size := func() uint64 {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	runtime.GC()
	before, largest := size(), uint64(0)
	over, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		for tick := time.NewTicker(5 * time.Millisecond); ; {
			select {
			case <-tick.C:
				largest = max(largest, size())
			case <-over:
				tick.Stop()
				return
			}
		}
	}()
	t.Cleanup(func() {
		close(over)
		<-watched
		t.Logf("the heap grew from %d to %d KiB", before>>10, largest>>10)
		assert.Less(t, largest, before+most)
	})
}

// Whatever the other side says, a dial ends soon with an error, and takes little memory.
func TestAMachineThatLiesIsNotReached(t *testing.T) {
	testenv.Slow(t)
	boundedHeap(t)
	const (
		isReady = `printf '%s bash /bin/bash\n%s system Linux x86_64\n%s uid 0\n%s limpet 1 1 /bin/true\n%s end 0\n' "$m" "$m" "$m" "$m" "$m"
read -r line
`
		hello = `echo "limpet-ready $m {\"protocol\":[1,1],\"place\":\"x\"}"
`
	)
	for name, script := range map[string]string{
		"a flood without an end":     `exec yes`,
		"lines with nothing":         `exec yes ''`,
		"a line without an end":      `exec yes ' ' | tr -d '\n'`,
		"answers without an end":     `while :; do echo "$m part x"; done`,
		"an end that makes no sense": `echo "$m end x"; exec sleep 1000`,
		"ready when nobody asked":    `echo "$m ready 1"; echo "$m end 0"; exec sleep 1000`,
		"no answer":                  `exec sleep 1000`,
		"a hello without an end":     isReady + `printf 'limpet-ready %s ' "$m"; exec yes ' ' | tr -d '\n'`,
		"a hello that is none":       isReady + `echo "limpet-ready $m {"; exec sleep 1000`,
		"another version":            isReady + `echo "limpet-ready $m {\"protocol\":[7,9],\"version\":\"9\"}"; exec sleep 1000`,
		"another's mark":             isReady + `echo "limpet-ready other {\"protocol\":[1,1]}"; exec sleep 1000`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := failing(t, liar(t, script), &host.Options{Patience: 2 * time.Second})
			t.Log(err)
			assert.Less(t, len(err.Error()), 4000)
		})
	}
	// Frames of HTTP/2 (RFC 9113, section 4.1), when the request has come: lengths, types, flags and streams.
	const (
		settings = `head -c 100 >/dev/null; printf '\0\0\0\4\0\0\0\0\0'
`
		header = settings + `printf '\0\0\1\1\0\0\0\0\1\210'
`
	)
	broken := map[string]bool{"a header without an end": true, "a frame of another stream": true} // The protocol: that is no silence.
	for name, script := range map[string]string{
		"a header without an end":   header + `{ printf '\0\047\020\011\0\0\0\0\1'; printf '\0\1a\1b%.0s' {1..2000}; } >"$0.frame"; while cat "$0.frame"; do :; done`,
		"a frame of another stream": settings + `printf '\0\0\1\0\0\0\0\0\143x'; exec sleep 1000`,
		"no HTTP":                   `echo nonsense; exec sleep 1000`,
		"a flood":                   `exec cat /dev/zero`,
		"an answer of another kind": `printf 'HTTP/1.1 200 OK\r\nContent-Length: 100000000000\r\n\r\n'; exec yes`,
		"nothing":                   `exec sleep 1000`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			to, err := host.ParseTarget(liar(t, isReady+hello+script))
			require.NoError(t, err)
			opts := &host.Options{Patience: 2 * time.Second, Times: short, Reconnect: -1}
			if broken[name] { // The error is no silence, and comes at once.
				opts = &host.Options{Reconnect: -1}
			}
			h, err := host.Dial(testenv.Context(t), to, opts)
			if broken[name] {
				require.NoError(t, err)
			}
			if err == nil {
				_, err = h.List(testenv.Context(t), false)
				assert.ErrorIs(t, err, host.ErrLost)
				if t.Log(err); broken[name] {
					assert.NotErrorIs(t, err, pipe.ErrSilent)
				}
				_ = h.Disconnect() // It is lost.
			}
			require.Error(t, err)
		})
	}
}
