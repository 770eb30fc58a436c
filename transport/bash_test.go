package transport_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/transport"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

func program(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bash")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o755))
	return path
}

func TestCheckVersion(t *testing.T) {
	for version, want := range map[string]string{
		"4.4.0(1)-release":  "",
		"5.2.15(1)-release": "",
		"10.0":              "",
		"4.3.48(1)-release": "bash 4.3.48(1)-release is too old: limpet needs 4.4 or newer; set Options.Bash to a newer one (on macOS: brew install bash)",
		"":                  `it is no bash: it says its version is ""; Options.Bash wants a bash, 4.4 or newer`,
	} {
		err := transport.CheckVersion(version)
		if want == "" {
			assert.NoError(t, err, version)
		} else {
			assert.EqualError(t, err, want, version)
		}
	}
}

func TestCheckBashRefusesWhatIsNone(t *testing.T) {
	t.Setenv("BASH_VERSION", "5.2")
	for _, test := range []struct{ name, path, want string }{
		{"another program", "/bin/cat", "(exit status 1): it said: "},
		{"another shell", program(t, "#!/bin/sh\necho Illegal option -- >&2\nexit 2\n"),
			"it ended without saying its version (exit status 2): it said: Illegal option --; Options.Bash wants a bash, 4.4 or newer"},
		{"one that takes anything", program(t, "#!/bin/sh\nprintf %s \"$BASH_VERSION\"\n"), `it is no bash: it says its version is ""`},
		{"too old", program(t, "#!/bin/sh\necho '3.2.57(1)-release'\n"), "3.2.57(1)-release is too old: limpet needs 4.4 or newer"},
		{"killed", program(t, "#!/bin/sh\nkill -9 $$\n"), "killed by signal 9"},
		{"talks much", program(t, "#!/bin/sh\nhead -c 1000000 /dev/zero | tr '\\0' 'x'\n"), "it is no bash"},
		{"no program", program(t, "no program\n"), "exec format error; Options.Bash wants a bash"},
		{"missing", "/no/such/bash", "no such file"},
	} {
		for range 2 {
			err := transport.CheckBash(testenv.Context(t), test.path)
			_, ok := errors.AsType[*transport.StartError](err)
			require.True(t, ok, "%s: %T: %v", test.name, err, err)
			assert.ErrorContains(t, err, test.want, test.name)
		}
	}
}

func TestCheckBashRunsItOnce(t *testing.T) {
	bash, err := transport.FindBash("")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "bash")
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\necho ran >>\"$0.log\"\nexec "+bash+" \"$@\"\n"), 0o755))
	for range 3 {
		require.NoError(t, transport.CheckBash(testenv.Context(t), path))
	}
	log, err := os.ReadFile(path + ".log")
	require.NoError(t, err)
	assert.Equal(t, "ran\n", string(log))
}

func TestCheckBashObeysItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(testenv.Context(t), 100*time.Millisecond)
	defer cancel()
	err := transport.CheckBash(ctx, program(t, "#!/bin/sh\nsleep 60\n"))
	assert.ErrorIs(t, err, context.DeadlineExceeded)
}
