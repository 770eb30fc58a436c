package host_test

import (
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/socket"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// offer is a unix socket. Each connection is the standard input and output of a program of its own, as with socat and systemd.
type offer struct {
	path string

	mu      sync.Mutex
	running int // programs
}

// offers has a program offered until the end of the test, which waits for all that were started.
func offers(t *testing.T, path string, program func() *exec.Cmd) *offer {
	t.Helper()
	l, err := socket.Listen(filepath.Dir(path), filepath.Base(path))
	require.NoError(t, err)
	o := &offer{path: path}
	var all sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close() // It ends the Accept.
		all.Wait()
	})
	all.Go(func() {
		for {
			c, err := l.AcceptUnix()
			if err != nil {
				return
			}
			f, err := c.File()
			_ = c.Close() // The program has its own.
			if !assert.NoError(t, err) {
				return
			}
			cmd := program()
			cmd.Stdin, cmd.Stdout = f, f
			err = cmd.Start()
			_ = f.Close() // As above.
			if !assert.NoError(t, err) {
				return
			}
			o.count(1)
			all.Go(func() {
				_ = cmd.Wait() // Some are killed.
				o.count(-1)
			})
		}
	})
	return o
}

// count adds to the number of programs that run, and returns it.
func (o *offer) count(n int) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.running += n
	return o.running
}

func (o *offer) target() string { return (&url.URL{Scheme: "unix", Path: o.path}).String() }

// offersConnect offers what limpet connect --stdio is.
func offersConnect(t *testing.T, path string) *offer {
	t.Helper()
	home := testenv.TempDir(t)
	endSessions(t, filepath.Join(home, ".local/state/limpet/keep"))
	self, err := os.Executable()
	require.NoError(t, err)
	return offers(t, path, func() *exec.Cmd {
		return &exec.Cmd{Path: self, Args: []string{"limpet-connect", "-"}, Env: []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "GORACE=" + race}}
	})
}

func TestAMachineIsReachedByASocket(t *testing.T) {
	// Longer than an address, and with characters that are escaped.
	dir := filepath.Join(testenv.TempDir(t), "a dir? 100%", strings.Repeat("long", 30))
	require.NoError(t, os.MkdirAll(dir, 0o700))
	o := offersConnect(t, filepath.Join(dir, "s"))
	sharing(t)
	for _, share := range []bool{false, true} {
		h := dial(t, o.target(), &host.Options{Share: share})
		s, err := h.Session(testenv.Context(t), "s", &keeper.Spec{})
		require.NoError(t, err)
		assert.Equal(t, !share, s.Made, "there is one session, however it is reached")
		res, err := s.Run(testenv.Context(t), "x=${x}1; echo $x")
		require.NoError(t, err)
		assert.Equal(t, map[bool]string{false: "1\n", true: "11\n"}[share], res.Stdout.String())
		require.NoError(t, h.Disconnect())
		if !share {
			testenv.Await(t, "the limpet at the socket to end with the connection", func() bool { return o.count(0) == 0 })
		}
	}
	list, err := host.ListShared(testenv.Context(t))
	require.NoError(t, err)
	require.Len(t, list, 1)
	assert.Equal(t, o.target(), list[0].Target)
	require.NoError(t, list[0].End(testenv.Context(t)))
	testenv.Await(t, "the limpet at the socket to end with the connection", func() bool { return o.count(0) == 0 })
}

// A command goes on where it was when the program at the socket is killed.
func TestAConnectionByASocketIsDialledAgain(t *testing.T) {
	testenv.Slow(t)
	o := offersConnect(t, filepath.Join(testenv.TempDir(t), "s"))
	sharing(t)
	for _, share := range []bool{false, true} {
		var lost error
		h := dial(t, o.target(), &host.Options{Share: share, Lost: func(why error) { lost = why }})
		s, err := h.Session(testenv.Context(t), "s", &keeper.Spec{})
		require.NoError(t, err)
		fifo := filepath.Join(testenv.TempDir(t), "fifo")
		require.NoError(t, unix.Mkfifo(fifo, 0o600))
		out := make(chan string, 1)
		go func() {
			res, err := s.Run(testenv.Context(t), "echo before >"+fifo+"; read x <"+fifo+"; echo $x")
			assert.NoError(t, err)
			if err == nil {
				out <- res.Stdout.String()
			}
			close(out)
		}()
		b, err := os.ReadFile(fifo)
		require.NoError(t, err)
		assert.Equal(t, "before\n", string(b))
		require.NoError(t, syscall.Kill(connectOf(h), syscall.SIGKILL))
		require.NoError(t, os.WriteFile(fifo, []byte("after\n"), 0))
		assert.Equal(t, "after\n", <-out)
		require.ErrorIs(t, lost, host.ErrLost)
		assert.Contains(t, lost.Error(), "the connection is lost: the other end of the socket has closed it")
		require.NoError(t, h.Disconnect())
	}
}

func TestASocketThatLeadsToNoLimpetIsAClearError(t *testing.T) {
	testenv.Slow(t)
	const offer = "limpet connect --stdio"
	dir := testenv.TempDir(t)
	mute := offers(t, filepath.Join(dir, "sh"), func() *exec.Cmd { return exec.Command("sh") })
	ends := offers(t, filepath.Join(dir, "ends"), func() *exec.Cmd { return exec.Command("true") })
	other := offers(t, filepath.Join(dir, "other"), func() *exec.Cmd { return exec.Command("seq", "1000000") })
	older := offers(t, filepath.Join(dir, "older"), func() *exec.Cmd {
		return exec.Command("sh", "-c", `echo 'limpet-ready - {"protocol":[0,0],"version":"0.1"}'; exec cat`)
	})
	dead, err := socket.Listen(dir, "dead")
	require.NoError(t, err)
	require.NoError(t, dead.Close())
	for target, row := range map[string]struct {
		patience     time.Duration
		says, remedy string
	}{
		mute.target():                     {200 * time.Millisecond, "nothing was heard from there for 200ms", offer},
		ends.target():                     {0, "it ended", offer},
		other.target():                    {0, "it printed too much", offer},
		older.target():                    {0, "limpet 0.1 is there, which speaks versions 0 to 0 of the protocol", "; update the limpet over there"},
		"unix://" + dir + "/dead":         {0, "connection refused", offer},
		"unix://" + dir + "/none/there":   {0, "no such file or directory", offer},
		"unix://" + dir + "/none%20there": {0, "no such file or directory", offer},
	} {
		to, err := host.ParseTarget(target)
		require.NoError(t, err)
		_, err = host.Dial(testenv.Context(t), to, &host.Options{Patience: row.patience})
		require.ErrorIs(t, err, host.ErrUnreached, target)
		assert.Contains(t, err.Error(), row.says, target)
		assert.Contains(t, err.Error(), row.remedy, "what to do about it: %s", target)
	}
}

// Whoever listens there is given scripts, and the values of --env.
func TestASocketOfAnotherUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can run something as another user")
	}
	path := filepath.Join(testenv.TempDir(t), "s")
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	defer unix.Close(fd) // Nobody is connected.
	require.NoError(t, unix.Bind(fd, &unix.SockaddrUnix{Name: path}))
	listens := make(chan error)
	go func() {
		runtime.LockOSThread() // The thread is another user's, and ends with this.
		const nobody = 65534
		if _, _, errno := syscall.RawSyscall(syscall.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
			listens <- errno
			return
		}
		listens <- unix.Listen(fd, 1)
	}()
	require.NoError(t, <-listens)
	to, err := host.ParseTarget("unix://" + path)
	require.NoError(t, err)
	_, err = host.Dial(testenv.Context(t), to, nil)
	require.ErrorIs(t, err, host.ErrUnreached)
	assert.Contains(t, err.Error(), "user 65534 listens there, and neither user 0 nor root")
	c, err := net.Dial("unix", path)
	require.NoError(t, err, "it is no other error that hides this")
	require.NoError(t, c.Close())
}
