package keeper

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// groupsVar has a keeper of this test binary read another file of control groups.
const groupsVar = "LIMPET_TEST_GROUPS"

func init() {
	if path, ok := os.LookupEnv(groupsVar); ok {
		groupsFile = path
	}
}

func TestAServiceIsFoundByItsControlGroup(t *testing.T) {
	for lines, want := range map[string]string{
		"0::/system.slice/cron.service\n":                                                          "/system.slice/cron.service",
		"0::/system.slice/ci.service/job-1\n":                                                      "/system.slice/ci.service",
		"0::/user.slice/user-1000.slice/user@1000.service/app.slice/build.service\n":               "/user.slice/user-1000.slice/user@1000.service/app.slice/build.service",
		"0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-org.terminal-4711.scope\n": "",
		"0::/user.slice/user-1000.slice/user@1000.service/init.scope\n":                            "",
		"0::/user.slice/user-1000.slice/session-3.scope\n":                                         "",
		"9:name=systemd:/system.slice/cron.service\n8:pids:/other.service\n0::/\n":                 "/system.slice/cron.service",
		"0::/\n":                               "",
		"":                                     "",
		"nonsense\n1:2\n0::relative.service\n": "relative.service",
	} {
		assert.Equal(t, want, serviceOf(lines), "%q", lines)
	}
}

// Who asks for a session that was killed with the service it was made in is told so.
func TestASessionThatEndedWithItsServiceSaysSo(t *testing.T) {
	dir := filepath.Join(testenv.TempDir(t), "id")
	require.NoError(t, os.Mkdir(dir, 0o700))
	e := entry{dir: dir, record: Record{ID: "id", Name: "s", State: Running, Within: "/no.slice/limpet-test-gone.service"}}
	assert.Equal(t, "ended with limpet-test-gone.service, in which it was made", dead(e).End.String())
	assert.Equal(t, "limpet-test-gone.service", e.record.EndsWith())
	e.record.Within = "" // As almost everywhere.
	assert.Equal(t, "ended when its keeper was killed", dead(e).End.String())
	assert.Empty(t, e.record.EndsWith())
}

func TestAKeeperWritesDownInWhichServiceItIs(t *testing.T) {
	for lines, want := range map[string]string{"0::/system.slice/limpet-test.service\n": "limpet-test.service", "0::/user.slice/user-0.slice/session-3.scope\n": ""} {
		file := filepath.Join(testenv.TempDir(t), "cgroup")
		require.NoError(t, os.WriteFile(file, []byte(lines), 0o600))
		r := executing(t)
		k, err := r.Session(testenv.Context(t), "s", &Spec{Env: append(os.Environ(), groupsVar+"="+file)})
		require.NoError(t, err)
		k.Disconnect()
		list, err := r.List(testenv.Context(t), false)
		require.NoError(t, err)
		require.Len(t, list, 1)
		assert.Equal(t, want, list[0].Record.EndsWith())
	}
}
