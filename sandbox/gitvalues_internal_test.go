package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Git itself says what a value is.
func TestConfigurationIsReadAsGitReadsIt(t *testing.T) {
	for _, text := range []string{
		"[core]\n\thooksPath = a\n",
		"[core] hooksPath=a",
		"\ufeff[core]\nhooksPath = a\n",
		"[core]\r\nhooksPath = a b \r\n",
		"[core]\nHOOKSPATH\t=\ta\tb\t\n",
		"[core]\nhooksPath = a\"b c\"d\n",
		"[core]\nhooksPath = \"a \" b \n",
		"[core]\nhooksPath = a \"\" \n",
		"[core]\nhooksPath = \"\" a\n",
		"[core]\nhooksPath = a#b\n",
		"[core]\nhooksPath = a;b\n",
		"[core]\nhooksPath = a\t# b \\\n",
		"[core]\nhooksPath = \"a # ; b\"\n",
		"[core]\nhooksPath = a\\\n b\\\nc\n",
		"[core]\nhooksPath = a\\tb\\\\c\\\"d\n",
		"[core]\nhooksPath = a\\bb\n",
		"[core]\nhooksPath = a \\\n\n",
		"[core]\nhooksPath = a\\",
		"[core \"]\"]\n[other \"a\\\"]b\"] x = y\n[core] hooksPath = a\n",
		"# [core]\n; x\n[core] # y\n\thooksPath = a\n",
		"[core]\nx\ny =\nhooksPath = a\n",
		"[core]\nx-1 = 2\nhooksPath\\\n = b\n[core]\n",
		"[core]\nx = " + strings.Repeat("y", 1<<17) + "\nhooksPath = a\n",
		"[core]\nhooksPath = a\\x\n",
		"[core]\nhooksPath = \"a\n",
		"[core]\n\xc3\xa4 = x\n",
		"[core]\nhooksPath = \xc3\xa4\n",
		"[core", "[core]\nx", "[\"", "[\"\\", "[core]\nhooksPat", "[core]\nhooksPath =", "[core]\nhooksPath = \"", "",
	} {
		file := filepath.Join(t.TempDir(), "config")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		want, err := exec.Command("git", "config", "--file", file, "-z", "--get", "core.hooksPath").Output()
		values, ours := gitValues(file)
		require.NoError(t, ours)
		if err == nil { // Else git has none, or does not understand the file.
			assert.Contains(t, values, gitValue{"hookspath", strings.TrimSuffix(string(want), "\x00")}, "%.200q", text)
		}
	}
	file := filepath.Join(t.TempDir(), "config")
	require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("#\n", 1<<19)+"[core]\nhooksPath = a\n"), 0o600))
	_, err := gitValues(file)
	require.ErrorIs(t, err, ErrProtect)
	assert.ErrorContains(t, err, "cannot protect what "+file+" names: it has more than")
}

func TestWhatTheEnvironmentNamesIsGuarded(t *testing.T) {
	w := filepath.Join(tree(t, "home/w/.git/", "home/w/hooks/", "home/w/inc", "home/w/more/"), "home/w")
	require.NoError(t, os.WriteFile(filepath.Join(w, "inc"), []byte("[core]\nhooksPath = more\n"), 0o600))
	for key, value := range map[string]string{
		"GIT_CONFIG_COUNT": "3", "GIT_CONFIG_KEY_0": "core.hooksPath", "GIT_CONFIG_VALUE_0": "hooks",
		"GIT_CONFIG_KEY_1": "includeIf.gitdir:a.b.Path", "GIT_CONFIG_VALUE_1": w + "/inc", "GIT_CONFIG_KEY_2": "include.path", "GIT_CONFIG_VALUE_2": "none",
	} {
		t.Setenv(key, value)
	}
	p := WorkspaceWrite(w)
	p.FS.Protect, p.FS.ScanProtect = []string{}, []string{}
	r, err := p.resolve()
	require.NoError(t, err)
	assert.Equal(t, []string{w + "/.git", w + "/hooks", w + "/inc", w + "/more"}, readOnlyIn(r))
}
