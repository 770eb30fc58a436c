//go:build !linux

package proc

import (
	"errors"
	"io/fs"
	"net/netip"
	"os"
	"syscall"
	"time"
)

// ErrGone means that the process has ended; its pid may be another's now.
var ErrGone = errors.New("proc: the process is gone")

func Read(int) (Stat, error)                 { return Stat{}, errors.ErrUnsupported }
func List() ([]Stat, error)                  { return nil, errors.ErrUnsupported }
func HasEnv(int, string) bool                { return false }
func Env(int, string) (string, bool)         { return "", false }
func envValues(int, string) ([]string, bool) { return nil, false }
func Command(int) string                     { return "" }
func CommandSoon(Stat) string                { return "" }
func Program(int) string                     { return "" }
func Name(int) string                        { return "" }
func EUID(int) (int, error)                  { return 0, errors.ErrUnsupported }
func ReadSignals(int) Signals                { return Signals{} }
func Children(int) []Stat                    { return nil }
func Ran(ID) time.Duration                   { return 0 }
func AwaitStop(ID, time.Duration) bool       { return false }
func Dir(int) (string, error)                { return "", errors.ErrUnsupported }
func InDeadDir(int) bool                     { return false }
func Descriptors(int) (int, error)           { return 0, errors.ErrUnsupported }
func Numbers(int) ([]int, error)             { return nil, errors.ErrUnsupported }
func Libraries(int) ([]string, error)        { return nil, errors.ErrUnsupported }
func Now() uint64                            { return 0 }
func AwaitsInput(int, string) bool           { return false }
func Stdin(int) string                       { return "" }
func AwaitsChild(int) bool                   { return true }
func Reads(int, uint64) (a, b bool, _ error) { return false, false, errors.ErrUnsupported }
func AwaitsAny(int) bool                     { return false }
func Waits(int) bool                         { return false }
func Kills(int) bool                         { return false }
func MostDescriptors(int) int                { return 0 }
func ReadsPipe(int) bool                     { return false }
func Closed(int, int) bool                   { return false }
func Writes(int, fs.FileInfo) bool           { return false }

// Cursor has nothing to tell here.
type Cursor struct{}

func NewCursor() (*Cursor, error)                { return nil, errors.ErrUnsupported }
func (c *Cursor) Last() (int, error)             { return 0, errors.ErrUnsupported }
func (c *Cursor) Since(int) ([]Stat, int, error) { return nil, 0, errors.ErrUnsupported }
func (c *Cursor) Close()                         {}

// Signal signals by pid alone: there is no start time to compare here.
func Signal(id ID, sig syscall.Signal) error {
	err := syscall.Kill(id.PID, sig)
	if err == syscall.ESRCH {
		return ErrGone
	}
	return err
}

// WaitAny waits for the time to pass: nothing better is known here.
func WaitAny(_ []ID, timeout time.Duration) { time.Sleep(timeout) }

// Executable is the path of this program's executable.
func Executable() (string, error) { return os.Executable() }

// Connected knows nobody: there is no /proc.
func Connected(netip.AddrPort, netip.AddrPort) (pids []int, gone bool) { return nil, false }
