package host

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/proc"
)

// program is an executable that can be brought to another machine: limpet, or another one that has package connect in it.
type program struct {
	path string
	hash string
	size int64

	passed []error // why files that have the name of such a program were passed over
}

// The names that uname(1) has for systems and processors, as Go has them.
var (
	goos   = map[string]string{"Linux": "linux", "Darwin": "darwin"}
	goarch = map[string]string{"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64", "armv7l": "arm", "armv6l": "arm", "i686": "386", "i386": "386", "riscv64": "riscv64", "ppc64le": "ppc64le", "s390x": "s390x"}
)

// systemOf returns the system and the processor, as Go has them, of what uname -sm says.
func systemOf(uname string) (system, arch string) {
	name, machine, _ := strings.Cut(uname, " ")
	return goos[name], goarch[machine]
}

// itself is this program, which is hashed once.
var itself = sync.OnceValues(func() (program, error) { return readProgram(proc.Self()) })

// wanted says what program is wanted.
type wanted struct {
	system, arch string
	version      string // of limpet here
	whole        bool   // it must be limpet, and not a part of it
}

// programFor returns the program for a system: the first file limpet-OS-ARCH that fits, of a directory, or beside this program. For the system of
// this program that file is optional, as this program can be brought. A file that does not fit is passed over.
func (o Options) programFor(system, arch string) (program, error) {
	own := system == runtime.GOOS && arch == runtime.GOARCH
	if own && o.Executable != "" {
		return readProgram(o.Executable)
	}
	name := fmt.Sprintf("limpet-%s-%s", system, arch)
	var dirs []string
	if o.Agents != "" {
		dirs = append(dirs, o.Agents)
	}
	if beside := proc.ExecutableDir(); beside != "" {
		dirs = append(dirs, beside)
	}
	var passed []error
	for _, dir := range dirs {
		path := filepath.Join(dir, name)
		p, err := fitting(path, wanted{system, arch, keeper.Number(), o.Whole})
		if err == nil {
			p.passed = passed
			return p, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			passed = append(passed, fmt.Errorf("%s: %w", path, err))
		}
	}
	if own {
		p, err := itself()
		p.passed = passed
		return p, err
	}
	why := fmt.Sprintf("there is no %s in %s", name, strings.Join(dirs, " or "))
	if len(passed) > 0 {
		why = strings.ReplaceAll(errors.Join(passed...).Error(), "\n", "; ") // An error is one line.
	}
	return program{}, fmt.Errorf("%w: %s", ErrNoProgram, why)
}

// programOf is programFor for what uname -sm says.
func (o Options) programOf(uname string) (program, error) {
	system, arch := systemOf(uname)
	if system == "" || arch == "" {
		return program{}, fmt.Errorf("%w: it is %.100q", ErrNoProgram, uname)
	}
	return o.programFor(system, arch)
}

// fitting returns the program of a file. The error says why it is not one that is wanted.
func fitting(path string, want wanted) (program, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // A fifo would be waited for.
	if err != nil {
		return program{}, err
	}
	defer f.Close() // Read only.
	st, err := f.Stat()
	if err == nil {
		err = checkOwner(st)
	}
	if err != nil {
		return program{}, err
	}
	info, err := buildinfo.Read(f)
	if err != nil {
		return program{}, fmt.Errorf("it is not a program that Go has built: %w", err)
	}
	if err := want.check(info); err != nil {
		return program{}, err
	}
	return hashed(path, f, st)
}

// checkOwner returns an error if a file is not regular, or if another user than this one, root and the owner of this program can have written it: it is
// executed as the user on the other machine, and a directory that limpet is in may be one for temporary files.
func checkOwner(st fs.FileInfo) error {
	const others = 0o002
	if !st.Mode().IsRegular() {
		return errors.New("it is not a regular file")
	}
	if st.Mode().Perm()&others != 0 {
		return fmt.Errorf("others can write to it: chmod o-w %s", st.Name())
	}
	trusted := []uint32{0, uint32(os.Geteuid())}
	if self, err := os.Stat(proc.Self()); err == nil {
		if of, ok := self.Sys().(*syscall.Stat_t); ok {
			trusted = append(trusted, of.Uid)
		}
	}
	if of, ok := st.Sys().(*syscall.Stat_t); !ok || !slices.Contains(trusted, of.Uid) {
		return errors.New("it belongs to another user: chown it")
	}
	return nil
}

// check returns an error if a program that was built so is not what is wanted, as far as that can be told: where Go knew no version, one may be another.
func (w wanted) check(info *debug.BuildInfo) error {
	built := make(map[string]string)
	for _, one := range info.Settings {
		built[one.Key] = one.Value
	}
	number := keeper.NumberIn(info)
	switch {
	case number == "":
		return fmt.Errorf("it is %s, which has no limpet in it", info.Path)
	case built["GOOS"] != w.system || built["GOARCH"] != w.arch:
		return fmt.Errorf("it is for %s/%s", built["GOOS"], built["GOARCH"])
	case number != w.version && number != keeper.Unversioned && w.version != keeper.Unversioned:
		return fmt.Errorf("it is of limpet %s, and this is %s: build it anew", number, w.version)
	case w.whole && info.Path != keeper.Module+"/cmd/limpet":
		return fmt.Errorf("it is %s, and limpet as a whole is needed", info.Path)
	}
	return nil
}

func readProgram(path string) (program, error) {
	f, err := os.Open(path)
	if err != nil {
		return program{}, err
	}
	defer f.Close() // Read only.
	st, err := f.Stat()
	if err != nil {
		return program{}, err
	}
	return hashed(path, f, st)
}

// hashes remembers the hash of each file by its path, size and time of change. So a program that reaches many machines reads a file once.
var hashes sync.Map // of fileState to string

type fileState struct {
	path          string
	size, changed int64
}

// hashed returns the program of a file that is open. If another one takes its place meanwhile, sendTo does not send that.
func hashed(path string, f io.ReadSeeker, st fs.FileInfo) (program, error) {
	state := fileState{path, st.Size(), st.ModTime().UnixNano()}
	if hash, ok := hashes.Load(state); ok {
		return program{path: path, hash: hash.(string), size: state.size}, nil
	}
	sum := sha256.New()
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return program{}, err
	}
	size, err := io.Copy(sum, f)
	if err != nil {
		return program{}, err
	}
	p := program{path: path, hash: hex.EncodeToString(sum.Sum(nil)), size: size}
	if size == state.size {
		hashes.Store(state, p.hash)
	}
	return p, nil
}

// is reports whether a file is the program: by its SHA-256, if that is there, and its size.
func (p program) is(sumAndSize []string) bool {
	switch n := len(sumAndSize); {
	case n == 2 && sumAndSize[0] != p.hash, n < 1, n > 2:
		return false
	default:
		return sumAndSize[n-1] == strconv.FormatInt(p.size, 10)
	}
}
