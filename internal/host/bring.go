package host

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/limpet-sh/limpet/internal/connect"
	"github.com/limpet-sh/limpet/internal/wire"
)

// Why no limpet can be had there, for errors.Is.
var (
	// ErrNoBash means that there is no bash, without which limpet can do nothing.
	ErrNoBash = errors.New("there is no bash over there")

	// ErrNoProgram means that the other machine has another system or processor, and that no limpet for it was found here.
	ErrNoProgram = errors.New("there is no limpet for it here")

	// ErrPart means that a whole limpet is needed there, and that the one which is there is a part of it.
	ErrPart = errors.New("the limpet over there is only a part of it, for connections and the sessions of people")

	// ErrNoPlace means that there is no directory that a program can be brought to.
	ErrNoPlace = errors.New("there is no directory to bring limpet to")

	// ErrSpoiled means that a program did not arrive as it was sent.
	ErrSpoiled = errors.New("limpet did not arrive as it was sent")
)

// startBrought is the command line by which a program that was brought serves a connection.
func (f *farShell) startBrought(file string) string {
	return fmt.Sprintf("exec %s %s", quoted(file), f.mark)
}

// find returns a command line that serves a connection, by a limpet that is there, or was brought before; empty if there is
// none. This one is the program that would be brought.
func (f *farShell) find(a answer, this program) string {
	for _, line := range a.all("limpet") { // None if it was not asked.
		fields := strings.SplitN(line, " ", 3)
		if len(fields) != 3 {
			continue // It did not say which versions it speaks.
		}
		oldest, err1 := strconv.Atoi(fields[0])
		newest, err2 := strconv.Atoi(fields[1])
		if err1 == nil && err2 == nil && oldest <= wire.Version && wire.Version <= newest {
			return fmt.Sprintf("exec %s connect --stdio %s", quoted(fields[2]), f.mark)
		}
	}
	if this.hash == "" {
		return ""
	}
	var parts []string
	var program string
	for _, line := range a {
		switch line[0] {
		case "dir":
			parts, program = nil, ""
		case "part":
			parts = append(parts, line[1])
		case "program":
			program = line[1]
		case "brought":
			const fields = 3
			said := strings.SplitN(line[1], " ", fields)
			if len(said) != fields || said[1] != strconv.FormatInt(this.size, 10) || said[0] != this.hash && said[0] != "-" {
				continue
			}
			if checkParts(parts, a.one("uid"), f.box) == nil && strings.HasPrefix(program, "-") && checkParts([]string{program}, a.one("uid"), false) == nil {
				return f.startBrought(said[2])
			}
		}
	}
	return ""
}

// checkParts returns an error if another user than uid and root can change the file or directory at the beginning of parts, or a
// directory above it. Each part is a line of ls -ldn. A directory with the sticky bit may be writable for all: only the owner of an
// entry can replace it there. In a box, a container or a pod, what it mounts of root's may be writable for all, as the emptyDir of a
// pod always is: nobody else is there but what shares its volumes.
func checkParts(parts []string, uid string, box bool) error {
	if len(parts) == 0 {
		return errors.New("nobody says who may change it")
	}
	for i, part := range parts {
		fields := strings.Fields(part)
		const most = 4
		if len(fields) < most || len(fields[0]) < len("drwxrwxrwx") {
			return fmt.Errorf("it makes no sense: %.100q", part)
		}
		mode, owner, path := fields[0], fields[2], fields[len(fields)-1]
		if mode[0] == 'l' {
			return fmt.Errorf("there is a link in its place: %.100q", part)
		}
		if owner != uid && owner != "0" {
			return fmt.Errorf("%s belongs to user %s", path, owner)
		}
		sticky := mode[9] == 't' || mode[9] == 'T'
		mounted := box && owner == "0" && i > 0
		if (mode[5] == 'w' || mode[8] == 'w') && (!sticky && !mounted || i == 0) {
			return fmt.Errorf("others can write to %s", path)
		}
	}
	return nil
}

// bring brings a program, and returns the command line by which it serves a connection.
func (f *farShell) bring(a answer, p program, progress func(sent, of int64)) (string, error) {
	if !slices.Contains(a.all("tool"), "head") {
		return "", fmt.Errorf("%w: there is no head(1)", ErrNoPlace)
	}
	var refused []string
	const most = 8 // That many there are, and no more are believed.
	dirs := a.all("dir")
	dirs = dirs[:min(len(dirs), most)]
	for _, box := range slices.Compact([]bool{false, f.box}) { // At last what a box mounts, if it is one.
		refused = nil
		for _, dir := range dirs {
			real, why, err := f.place(dir, a.one("uid"), p, box)
			switch {
			case err != nil:
				return "", err
			case why == "":
				return f.sendTo(real, a, p, progress)
			}
			refused = append(refused, dir+": "+why)
		}
	}
	return "", fmt.Errorf("%w: %s", ErrNoPlace, strings.Join(refused, "; "))
}

// place makes sure that a program can be brought to a directory, and executed there. It returns the real path, or why that
// cannot be.
func (f *farShell) place(dir, uid string, p program, box bool) (real, why string, err error) {
	a, err := f.call("limpet_place", map[string]string{"dir": dir, "hash": p.hash, "box": yesIf(box)}, nil)
	if errors.Is(err, errFunction) {
		return "", "it cannot be made", nil
	}
	if err != nil {
		return "", "", err
	}
	if taken := a.one("taken"); taken != "" {
		return "", plain([]byte(taken)), nil
	}
	if err := checkParts(a.all("part"), uid, box); err != nil {
		return "", err.Error(), nil
	}
	if own := a.all("own"); len(own) > 0 {
		if err := checkParts(own, uid, box); err != nil {
			return "", err.Error(), nil
		}
	}
	const available, unit = 3, 1024 // df -Pk
	if fields := strings.Fields(a.one("room")); len(fields) > available {
		if room, err := strconv.ParseInt(fields[available], 10, 64); err == nil && room*unit < p.size+p.size/2 {
			return "", fmt.Sprintf("it has room for %d MiB, and %d are needed", room*unit>>20, (p.size+p.size/2)>>20), nil
		}
	}
	if real = a.one("real"); real == "" {
		return "", "its path is not known", nil
	}
	a, err = f.call("limpet_try", map[string]string{"dir": real}, nil)
	if err != nil && !errors.Is(err, errFunction) {
		return "", "", err
	}
	if err != nil || len(a.all("executes")) == 0 {
		return "", "no program can be executed there", nil
	}
	return real, "", nil
}

// sendTo copies a program to a directory, and returns the command line that executes the copy. It sends each piece when the shell has
// said that it is ready for it: see limpet_receive.
func (f *farShell) sendTo(dir string, a answer, p program, progress func(sent, of int64)) (string, error) {
	const size = 1 << 20
	b, err := os.ReadFile(p.path)
	if err != nil {
		return "", err
	}
	if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != p.hash { // Where there is no sha256sum over there, nobody else would notice.
		return "", fmt.Errorf("%s was changed just now: %w", p.path, ErrSpoiled)
	}
	packed := "no"
	if slices.Contains(a.all("tool"), "gzip") {
		var out bytes.Buffer
		w, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
		if err == nil {
			_, err = w.Write(b)
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			return "", err
		}
		b, packed = out.Bytes(), "yes"
	}
	pieces := (len(b) + size - 1) / size
	sent, all := int64(0), int64(len(b))
	told, err := f.call("limpet_receive", map[string]string{
		"dir": dir, "hash": p.hash, "packed": packed, "pieces": strconv.Itoa(pieces), "size": strconv.Itoa(size), "last": strconv.Itoa(len(b) - (pieces-1)*size),
	}, func() error {
		progress(sent, all)
		piece := b[sent:min(sent+size, all)]
		if len(piece) == 0 {
			return io.ErrShortBuffer // It asks for more than there is.
		}
		sent += int64(len(piece))
		return f.sendPiece(piece)
	})
	f.goesOn(0)
	if err != nil {
		return "", err
	}
	progress(sent, all)
	part, file := told.one("part"), dir+"/"+p.hash+"/"+connect.Argv0
	if !p.is(strings.Fields(told.one("sum"))) {
		_, _ = f.call("limpet_drop", map[string]string{"part": part}, nil) // Best effort: connect removes it in a day.
		return "", ErrSpoiled
	}
	if _, err := f.call("limpet_keep", map[string]string{"part": part, "file": file}, nil); err != nil {
		return "", fmt.Errorf("%w: %w", ErrSpoiled, err)
	}
	return f.startBrought(file), nil
}
