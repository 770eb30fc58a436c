package remote_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/remote"
)

// playOwner serves a terminal until it is killed.
func playOwner(args []string) error {
	r, err := terminal.Open(args[0], nil)
	if err != nil {
		return err
	}
	if _, err := remote.Serve(r); err != nil {
		return err
	}
	t, err := r.Start(context.Background(), terminal.Spec{Line: "echo begun; exec sleep 60"})
	if err != nil {
		return err
	}
	fmt.Println(r.Owner(), t.ID())
	select {}
}

// play starts this program with a part, and returns what it says first.
func play(t *testing.T, args ...string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // It may have ended.
		_ = cmd.Wait()         // As above.
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return cmd, strings.TrimSpace(line)
}

func TestAnOwnerThatIsKilled(t *testing.T) {
	dir := t.TempDir()
	cmd, said := play(t, "owner", dir)
	owner, id, _ := strings.Cut(said, " ")
	client, err := remote.Dial(testenv.Context(t), dir, owner)
	require.NoError(t, err)
	defer client.Close() // It cannot fail.
	one := client.Terminal(id)
	waitFor(t, one, terminal.WaitOptions{Text: "begun"})
	v, err := one.Attach(0)
	require.NoError(t, err)
	defer v.Close() // As above.
	_, err = v.Next(testenv.Context(t))
	require.NoError(t, err)
	waited := make(chan error, 1)
	go func() {
		_, err := one.Wait(context.Background(), terminal.WaitOptions{Text: "never"})
		waited <- err
	}()
	require.NoError(t, cmd.Process.Kill())
	require.ErrorIs(t, <-waited, remote.ErrGone)
	for err == nil {
		_, err = v.Next(testenv.Context(t))
	}
	require.ErrorIs(t, err, remote.ErrGone)
	_ = cmd.Wait() // It was killed.
	require.FileExists(t, filepath.Join(dir, owner+".sock"))
	require.ErrorIs(t, dialled(t, dir, owner), remote.ErrGone)
	assert.NoFileExists(t, filepath.Join(dir, owner+".sock"))
	r, err := terminal.Open(dir, nil)
	require.NoError(t, err)
	defer r.Close() // Nothing runs in it.
	lost, err := r.Get(id)
	require.NoError(t, err)
	assert.Equal(t, terminal.Lost, lost.Info().State)
}

func TestAClientThatIsKilledOrReadsNothingHoldsNobodyUp(t *testing.T) {
	testenv.Slow(t)
	s := serve(t, t.TempDir(), nil)
	one := s.local(t, `read -rs; seq 500000; echo over; read -rs`)
	sent := make(chan struct{})
	_, err := one.Write([]byte("\n"))
	require.NoError(t, err)
	close(sent)
	cmd, _ := play(t, "slow", s.r.Dir(), s.r.Owner(), one.ID())
	w, err := one.Wait(testenv.Context(t), terminal.WaitOptions{Text: "over", Timeout: testenv.Patience})
	require.NoError(t, err)
	require.Equal(t, terminal.WaitMatched, w.Reason)
	require.NoError(t, cmd.Process.Kill())
	require.NoError(t, s.server.Drain(testenv.Context(t)))
	require.NoError(t, one.Close())
}

func TestAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root: nobody else can be played")
	}
	testenv.NeedProc(t)
	dir := filepath.Join(t.TempDir(), "terminals")
	s := serve(t, dir, nil)
	testenv.LetPass(t, dir)
	socket := filepath.Join(dir, s.r.Owner()+".sock")
	require.NoError(t, os.Chmod(dir, 0o755))
	require.NoError(t, os.Chmod(socket, 0o666)) // Its mode would refuse them before.
	testenv.LetPass(t, filepath.Dir(os.Args[0]))
	cmd := exec.Command(os.Args[0], "peer", socket)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345}}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "403 Forbidden")
	assert.Contains(t, string(out), "this is for user 0, and not for user 12345")
	assert.NotContains(t, string(out), s.r.Owner())
}
