package keys_test

import (
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/terminal/keys"
)

// capabilities returns what terminfo says of xterm-256color, each as bytes.
func capabilities(t *testing.T) map[string]string {
	t.Helper()
	if runtime.GOOS == "darwin" {
		t.Skip("the terminfo of macOS is that of 2008, when xterm had other keys")
	}
	path, err := exec.LookPath("infocmp")
	if err != nil {
		t.Skip("no infocmp")
	}
	out, err := exec.Command(path, "-1", "-x", "xterm-256color").Output()
	if err != nil {
		t.Skip("no terminfo of xterm-256color")
	}
	escape := regexp.MustCompile(`\\E|\^.|\\[0-7]{3}|\\.`)
	all := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, value, ok := strings.Cut(strings.TrimSuffix(strings.TrimSpace(line), ","), "=")
		if !ok {
			continue
		}
		all[name] = escape.ReplaceAllStringFunc(value, func(s string) string {
			switch {
			case s == `\E`:
				return "\x1b"
			case s == "^?":
				return "\x7f"
			case s[0] == '^':
				return string(rune(s[1] & 0x1f))
			case len(s) == len(`\177`):
				code, err := strconv.ParseUint(s[1:], 8, 8)
				require.NoError(t, err)
				return string(rune(code))
			}
			return s[1:]
		})
	}
	return all
}

// In terminfo is what keys send to a program that has sent smkx.
func TestKeysAreThoseOfTerminfo(t *testing.T) {
	caps := capabilities(t)
	require.Contains(t, caps["smkx"], "\x1b[?1h\x1b=")
	m := keys.Modes{AppCursor: true, AppKeypad: true}

	must := map[string]string{
		"kcuu1": "Up", "kcud1": "Down", "kcuf1": "Right", "kcub1": "Left", "khome": "Home", "kend": "End",
		"kpp": "PageUp", "knp": "PageDown", "kich1": "Insert", "kdch1": "Delete", "kcbt": "Shift-Tab", "kent": "KPEnter",
		"kri": "Shift-Up", "kind": "Shift-Down", "kLFT": "Shift-Left", "kRIT": "Shift-Right", "kHOM": "Shift-Home", "kEND": "Shift-End",
		"kDC": "Shift-Delete", "kIC": "Shift-Insert", "kPRV": "Shift-PageUp", "kNXT": "Shift-PageDown",
	}
	for i := range 24 {
		must["kf"+strconv.Itoa(i+1)] = "F" + strconv.Itoa(i+1)
	}
	for i := range 12 {
		n := strconv.Itoa(i + 1)
		must["kf"+strconv.Itoa(i+25)] = "Ctrl-F" + n
		must["kf"+strconv.Itoa(i+37)] = "Ctrl-Shift-F" + n
		must["kf"+strconv.Itoa(i+49)] = "Alt-F" + n
	}
	for name, key := range must {
		require.Contains(t, caps, name)
		assert.Equal(t, caps[name], typed(t, key, m), "%s is %s", name, key)
	}

	// What not every version has: the extended capabilities, and the keypad.
	may := map[string]string{
		"ka1": "KP7", "ka2": "KP8", "ka3": "KP9", "kb1": "KP4", "kb3": "KP6", "kc1": "KP1", "kc2": "KP2", "kc3": "KP3",
		"kpADD": "KP+", "kpSUB": "KP-", "kpMUL": "KP*", "kpDIV": "KP/", "kpDOT": "KP.", "kpCMA": "KP,", "kpZRO": "KP0",
	}
	held := map[string]string{"3": "Alt-", "4": "Alt-Shift-", "5": "Ctrl-", "6": "Ctrl-Shift-", "7": "Ctrl-Alt-"}
	for name, key := range map[string]string{
		"kUP": "Up", "kDN": "Down", "kRIT": "Right", "kLFT": "Left", "kHOM": "Home", "kEND": "End", "kDC": "Delete", "kIC": "Insert", "kPRV": "PageUp", "kNXT": "PageDown",
	} {
		for digit, mods := range held {
			may[name+digit] = mods + key
		}
	}
	for name, key := range may {
		if want, ok := caps[name]; ok {
			assert.Equal(t, want, typed(t, key, m), "%s is %s", name, key)
		}
	}
}
