package audit

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/approval"
	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/questions"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/session"
)

const writer = "LIMPET_TEST_AUDIT_WRITER"

func TestMain(m *testing.M) {
	if path := os.Getenv(writer); path != "" { // Many lines, or until it is killed.
		l, err := Open(path)
		for i := 0; err == nil && i < 2000; i++ {
			err = l.Write(Entry{Time: time.Now(), Kind: "begin", PID: os.Getpid(), ID: int64(i), Script: strings.Repeat("x", 3000)})
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	testenv.Main(m)
}

// entries are those of all files of a directory.
func entries(t *testing.T, dir string) (all []Entry, broken int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	require.NoError(t, err)
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		for s := bufio.NewScanner(bytes.NewReader(b)); s.Scan(); {
			var e Entry
			if json.Unmarshal(s.Bytes(), &e) != nil {
				broken++
				continue
			}
			all = append(all, e)
		}
	}
	return all, broken
}

func TestManyWritersLoseNoLineWhileTheFileIsRenamed(t *testing.T) {
	dir := testenv.TempDir(t)
	const each, writers = 200, 8
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			l, err := Open(filepath.Join(dir, "a.jsonl"))
			if !assert.NoError(t, err) {
				return
			}
			l.most = 20 << 10
			for i := range each {
				assert.NoError(t, l.Write(Entry{Time: time.Now(), Kind: "begin", PID: w, ID: int64(i), Script: strings.Repeat("x", 300)}))
			}
		})
	}
	all.Wait()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	assert.Greater(t, len(files), 5)
	for _, file := range files {
		st, err := os.Stat(file)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o600), st.Mode().Perm())
		assert.Less(t, st.Size(), int64(25<<10))
	}
	got, broken := entries(t, dir)
	assert.Zero(t, broken)
	seen := make(map[string]bool)
	for _, e := range got {
		seen[fmt.Sprint(e.PID, e.ID)] = true
	}
	assert.Len(t, seen, each*writers)
}

// Full files are renamed, and none of them takes the place of another, whatever time the lines have.
func TestNoFullFileTakesThePlaceOfAnother(t *testing.T) {
	dir := testenv.TempDir(t)
	l, err := Open(filepath.Join(dir, "a.jsonl"))
	require.NoError(t, err)
	l.most = 1
	const many = 10
	for i := range many {
		require.NoError(t, l.Write(Entry{Time: time.Unix(1, 0), Kind: "begin", ID: int64(i + 1)}))
	}
	got, broken := entries(t, dir)
	assert.Zero(t, broken)
	assert.Len(t, got, many)
}

// Whoever is killed while it writes leaves half a line at most, which spoils no other.
func TestAKillSpoilsNoOtherLine(t *testing.T) {
	dir := testenv.TempDir(t)
	path := filepath.Join(dir, "a.jsonl")
	exe, err := os.Executable()
	require.NoError(t, err)
	for range 5 {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), writer+"="+path)
		require.NoError(t, cmd.Start())
		size := func() int64 {
			st, err := os.Stat(path)
			if err != nil {
				return 0
			}
			return st.Size()
		}
		before := size()
		testenv.Await(t, "some lines", func() bool { return size() > before+10<<10 })
		require.NoError(t, cmd.Process.Kill())
		_ = cmd.Wait() // It was killed.
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = f.WriteString(`{"kind":"half`)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	l, err := Open(path)
	require.NoError(t, err)
	require.NoError(t, l.Write(Entry{Time: time.Now(), Kind: "last"}))
	got, broken := entries(t, dir)
	assert.Equal(t, "last", got[len(got)-1].Kind)
	assert.LessOrEqual(t, broken, 6)
	assert.Positive(t, broken)
}

// A program that keeps the lock, or is stopped with it, holds up nobody for longer than that.
func TestALockThatIsKeptIsAnError(t *testing.T) {
	usual := patience
	patience = 50 * time.Millisecond
	defer func() { patience = usual }()
	path := filepath.Join(testenv.TempDir(t), "a.jsonl")
	l, err := Open(path)
	require.NoError(t, err)
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close() // It was read.
	require.NoError(t, syscall.Flock(int(f.Fd()), syscall.LOCK_EX))
	err = l.Write(Entry{Time: time.Now(), Kind: "begin"})
	assert.ErrorIs(t, err, errLocked)
	assert.ErrorContains(t, err, path)
	require.NoError(t, syscall.Flock(int(f.Fd()), syscall.LOCK_UN))
	assert.NoError(t, l.Write(Entry{Time: time.Now(), Kind: "begin"}))
}

func TestADirectoryHasAFileForEachDay(t *testing.T) {
	dir := filepath.Join(testenv.TempDir(t), "log")
	l, err := Open(dir + "/")
	require.NoError(t, err)
	day := time.Date(2026, 1, 31, 23, 59, 0, 0, time.UTC)
	require.NoError(t, l.Write(Entry{Time: day, Kind: "one"}))
	require.NoError(t, l.Write(Entry{Time: day.Add(time.Hour), Kind: "two"}))
	for name, kind := range map[string]string{"2026-01-31.jsonl": "one", "2026-02-01.jsonl": "two"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Contains(t, string(b), kind)
	}
	st, err := os.Stat(dir)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o700), st.Mode().Perm())
}

func TestWhatIsNoFileOfTheUsersAloneIsRefused(t *testing.T) {
	dir := testenv.TempDir(t)
	file := filepath.Join(dir, "f")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	_, err := Open(file)
	assert.ErrorContains(t, err, "chmod 600")
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(file, link))
	_, err = Open(link)
	assert.ErrorContains(t, err, "symbolic link")
	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, syscall.Mkfifo(fifo, 0o600))
	_, err = Open(fifo)
	assert.ErrorContains(t, err, "no file that can be appended to")
	_, err = Open(filepath.Join(dir, "none", "f"))
	assert.ErrorIs(t, err, os.ErrNotExist)
	_, err = Open("")
	assert.Error(t, err)
}

func TestSecretsAreMaskedInEveryField(t *testing.T) {
	token := "ghp_" + strings.Repeat("a1B2", 9)
	action := session.Action{Kind: session.RunAction, Script: "echo " + token, Dir: "/d", Env: []string{"MY_TOKEN=hunter22", "A=" + token}}
	failed := errors.New("no " + token)
	big := []byte(strings.Repeat("line\n", 3000) + token + "\n")
	for _, e := range []Entry{
		Of(session.Record{Kind: session.BeginRecord, Action: action}),
		Of(session.Record{Kind: session.RefusedRecord, Action: action, Err: failed}),
		Of(session.Record{Kind: session.EndRecord, Action: action, Err: failed, Stdout: command.Output{Head: big, Total: int64(len(big))}, Stderr: command.Output{Head: []byte(token), Tail: []byte(token), Total: 1 << 20}}),
		Question(time.Now(), questions.Open{Question: approval.Question{Script: action.Script}}),
		Answer(time.Now(), questions.Open{Question: approval.Question{Script: action.Script}}, approval.Reply{Reason: token}, nil),
		Answer(time.Now(), questions.Open{Password: &command.PasswordQuestion{Prompt: token}}, approval.Reply{}, failed),
	} {
		b, err := json.Marshal(e)
		require.NoError(t, err)
		assert.NotContains(t, string(b), "a1B2a1B2", e.Kind)
		assert.NotContains(t, string(b), "hunter22", e.Kind)
		assert.Contains(t, e.Masked, "GitHub token", e.Kind)
		assert.Equal(t, len(e.Env) > 0, slices.Contains(e.Masked, "value of a variable"), e.Kind)
	}
}

func TestOutputIsBoundedAndWholeCharacters(t *testing.T) {
	text := []byte(strings.Repeat("ü", 1<<20))
	e := Of(session.Record{Kind: session.EndRecord, Action: session.Action{Kind: session.RunAction}, Stdout: command.Output{Head: text, Total: int64(len(text))}, Stderr: command.Output{Head: []byte{0, 1, 255}, Total: 3}})
	assert.EqualValues(t, len(text), e.Stdout.Bytes)
	assert.True(t, e.Stdout.Omitted)
	assert.Equal(t, strings.Repeat("ü", mostOutput/2), e.Stdout.Head)
	assert.Equal(t, strings.Repeat("ü", mostOutput/2), e.Stdout.Tail)
	assert.Equal(t, &Output{Bytes: 3, Binary: true}, e.Stderr)
}
