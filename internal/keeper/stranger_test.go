package keeper_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/socket"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/internal/wire"
)

// playStranger asks a keeper for what it is, and to run a script, and prints the answers. It names the keeper's directory by the ID.
func playStranger(dir, id, script string) error {
	dial := func(ctx context.Context) (net.Conn, error) { return socket.Dial(ctx, filepath.Join(dir, id), "s") }
	conn, err := dial(context.Background())
	if err != nil {
		return err
	}
	defer conn.Close() // It was only read from.
	if _, err := io.WriteString(conn, "GET /v1 HTTP/1.1\r\nHost: limpet\r\n\r\n"); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	fmt.Print(line)
	if err != nil {
		return err
	}
	client := wire.NewClient(dial)
	defer client.Disconnect()
	said, err := client.Hello(context.Background())
	fmt.Println(said.ID, err)
	res, err := client.Session("s").Run(context.Background(), script)
	fmt.Printf("%q %v\n", res.Stdout.String(), err)
	return nil
}

// What the modes of files let through the keeper refuses itself.
func TestAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root: nobody else can be played")
	}
	testenv.NeedProc(t)
	r := registry(t, testenv.TempDir(t))
	k := kept(t, r, "s", nil)
	dir := filepath.Join(r.Dir(), k.Record.ID)
	testenv.LetPass(t, dir)
	require.NoError(t, os.Chmod(filepath.Join(dir, "s"), 0o666))
	testenv.LetPass(t, filepath.Dir(os.Args[0]))
	ran := filepath.Join(testenv.TempDir(t), "ran")
	cmd := exec.Command(os.Args[0], "stranger", r.Dir(), k.Record.ID, "echo ran; echo >"+ran)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345}}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	const why = "this is for user 0, and not for user 12345"
	assert.Equal(t, "HTTP/1.1 403 Forbidden\r\n "+why+"\n\"\" "+why+"\n", string(out))
	assert.NoFileExists(t, ran)
}
