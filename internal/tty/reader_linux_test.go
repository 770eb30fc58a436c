package tty_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/internal/tty"
)

// onTTY starts a program on a terminal, which is its controlling terminal, and returns it.
func onTTY(t testing.TB, master, slave *os.File, script string) proc.ID {
	t.Helper()
	cmd := exec.Command("bash", "-c", script)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // It reads.
		_ = cmd.Wait()         // It was killed.
	})
	st, err := proc.Read(cmd.Process.Pid)
	require.NoError(t, err)
	return st.ID()
}

// lookVar has the test binary look at the terminal that it has as descriptor 3, at whose programs the process
// with that number is the first, and say what it finds.
const lookVar = "LIMPET_TEST_LOOK"

func init() {
	pid, err := strconv.Atoi(os.Getenv(lookVar))
	if err != nil {
		return
	}
	st, _ := proc.Read(pid)            // The zero value finds nothing.
	_, _, hidden := proc.Reads(pid, 0) // Nothing can be looked into, as the test wants it.
	w, found := tty.Reader(os.NewFile(3, "master"), st.ID())
	_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"found": found, "waits": w.String(), "hidden": hidden != nil}) // The test reads it.
	os.Exit(0)
}

// Of another user's program, as sudo, it is only known that it sleeps. A terminal that does not show what is
// typed tells the rest.
func TestAPasswordIsNoticedOfAProgramThatCannotBeLookedInto(t *testing.T) {
	testenv.NeedProc(t)
	if os.Geteuid() != 0 {
		t.Skip("not root: nobody else's program can be made")
	}
	for script, want := range map[string]string{"read -rs x": "bash waits for a password (echo is off)", "read -r x": ""} {
		master, slave := open(t, tty.Size{Rows: 24, Cols: 80})
		id := onTTY(t, master, slave, script)
		testenv.Await(t, "the reader", func() bool { _, found := tty.Reader(master, id); return found })
		conn, err := master.SyscallConn()
		require.NoError(t, err)
		var same *os.File
		require.NoError(t, conn.Control(func(fd uintptr) {
			dup, err := syscall.Dup(int(fd))
			require.NoError(t, err)
			same = os.NewFile(uintptr(dup), "master")
		}))
		const nobody = 65534
		look := exec.Command("/proc/self/exe") // Its directory may be root's alone.
		look.Env = []string{lookVar + "=" + strconv.Itoa(id.PID)}
		look.ExtraFiles = []*os.File{same}
		look.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		out, err := look.Output()
		require.NoError(t, err)
		require.NoError(t, same.Close())
		var said struct {
			Found, Hidden bool
			Waits         string
		}
		require.NoError(t, json.Unmarshal(out, &said))
		require.True(t, said.Hidden, "nobody may look into it")
		assert.Equal(t, want != "", said.Found)
		if want != "" {
			assert.Equal(t, want, said.Waits)
		}
	}
}

// BenchmarkReader is a look at a terminal with one program, and at an empty one.
func BenchmarkReader(b *testing.B) {
	testenv.NeedProc(b)
	for name, script := range map[string]string{"a read": "read -r x", "a sleep": "exec sleep 1000", "fifty": "for ((i = 0; i < 50; i++)); do sleep 1000 & done; read -r x"} {
		b.Run(name, func(b *testing.B) {
			master, slave, err := tty.Open(tty.Size{Rows: 24, Cols: 80})
			require.NoError(b, err)
			defer master.Close() // Nothing was written.
			defer slave.Close()  // As above.
			id := onTTY(b, master, slave, script)
			testenv.Await(b, "the program", func() bool { return proc.State(id) == 'S' })
			b.ReportAllocs()
			for b.Loop() {
				tty.Reader(master, id)
			}
		})
	}
}
