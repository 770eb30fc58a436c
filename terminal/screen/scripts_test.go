package screen_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/terminal/screen"
)

var update = flag.Bool("update", false, "write what the emulator shows into testdata; look at it, and let tmux confirm it")

// script is a line of testdata/scripts.
type script struct {
	name    string
	size    screen.Size
	script  []byte
	text    string
	cursor  string // column,row
	differs bool   // from what tmux shows
}

func scripts(t *testing.T) []script {
	t.Helper()
	files, err := filepath.Glob("testdata/scripts/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var list []script
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		lines := strings.Split(strings.TrimRight(string(b), "\n"), "\n")
		for i, line := range lines {
			if line == "" || line[0] == '#' {
				continue
			}
			parts := strings.Split(line, " | ")
			require.GreaterOrEqual(t, len(parts), 3, line)
			base := strings.TrimSuffix(filepath.Base(file), ".txt")
			c := script{name: base + "/" + parts[0], differs: base == "differs"}
			_, err := fmt.Sscanf(parts[1], "%dx%d", &c.size.Cols, &c.size.Rows)
			require.NoError(t, err, line)
			c.script = []byte(unquote(t, parts[2]))
			if *update {
				text, col, row := played(c)
				quoted := strconv.Quote(text)
				lines[i] = fmt.Sprintf("%s | %s | %s | %s | %d,%d", parts[0], parts[1], parts[2], quoted[1:len(quoted)-1], col, row)
				parts = strings.Split(lines[i], " | ")
			}
			require.Len(t, parts, 5, line)
			c.text, c.cursor = unquote(t, parts[3]), parts[4]
			list = append(list, c)
		}
		if *update {
			require.NoError(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o644))
		}
	}
	return list
}

func unquote(t *testing.T, s string) string {
	t.Helper()
	text, err := strconv.Unquote(`"` + s + `"`)
	require.NoError(t, err, s)
	return text
}

// captures are what programs printed on a terminal of 80 by 24. Beside each is the text
// that it shows, with the cursor in the first line.
func captures(t *testing.T) []script {
	t.Helper()
	files, err := filepath.Glob("testdata/captures/*.raw")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var list []script
	for _, file := range files {
		in, err := os.ReadFile(file)
		require.NoError(t, err)
		c := script{name: filepath.Base(file), size: screen.Size{Cols: 80, Rows: 24}, script: in}
		beside := strings.TrimSuffix(file, ".raw") + ".txt"
		if *update {
			text, col, row := played(c)
			require.NoError(t, os.WriteFile(beside, fmt.Appendf(nil, "%d,%d\n%s\n", col, row, text), 0o644))
		}
		want, err := os.ReadFile(beside)
		require.NoError(t, err)
		c.cursor, c.text, _ = strings.Cut(strings.TrimSuffix(string(want), "\n"), "\n")
		list = append(list, c)
	}
	return list
}

// played is what the emulator shows of a script.
func played(c script) (text string, col, row int) {
	e := screen.New(c.size, nil)
	defer e.Close()
	_, _ = e.Write(c.script) // Never fails.
	s := e.Screen()
	return s.Text(), s.Cursor.Col, s.Cursor.Row
}

func TestScriptsShow(t *testing.T) {
	for _, c := range append(scripts(t), captures(t)...) {
		t.Run(c.name, func(t *testing.T) {
			text, col, row := played(c)
			assert.Equal(t, c.text, text, "%q", c.script)
			assert.Equal(t, c.cursor, fmt.Sprintf("%d,%d", col, row), "%q", c.script)
		})
	}
}
