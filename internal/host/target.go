package host

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/limpet-sh/limpet/internal/lazyregexp"
)

// ErrTarget means that a text does not say where a machine is.
var ErrTarget = errors.New("is no target")

// remedyOfTarget is what to do about that.
const remedyOfTarget = "use ssh://[USER@]HOST[:PORT], docker://CONTAINER, podman://CONTAINER, kube://NAMESPACE/POD, unix:///PATH, or exec:ARGV, where ARGV reaches a POSIX sh over there"

// Target says where a machine is, and how it is reached.
type Target struct {
	said   string
	argv   []string
	socket string // the path of a unix socket, instead of an argv

	asks   []string // what is added to argv[0] when nobody is there to be asked
	person bool     // the command may ask whoever is at the terminal
	box    bool     // it is a container, or a pod
}

// String is what was said.
func (t Target) String() string { return t.said }

// ParseTarget reads a target:
//
//	ssh://[USER@]HOST[:PORT]      ssh(1), with the user's configuration, agent and known hosts. HOST may be a name of that configuration
//	docker://[USER@]CONTAINER     docker exec, in a container that runs
//	podman://[USER@]CONTAINER     podman exec
//	kube://NAMESPACE/POD[/CONTAINER], kube://CONTEXT/NAMESPACE/POD/[CONTAINER]
//	                              kubectl exec, in a pod that runs. Without a context it is the current one; what is no letter,
//	                              digit, dot or dash is escaped as in any URL, as %2F for a slash
//	unix:///PATH                  a unix socket, at which each connection reaches a "limpet connect --stdio" of its own. What would end
//	                              the path, or is a percent sign, is escaped as in any URL
//	exec:ARGV                     a command whose standard input and output reach a POSIX sh over there. It is words as bash has
//	                              them, in quotes where that is needed, without expansions
//
// The error is ErrTarget.
func ParseTarget(said string) (Target, error) {
	t := Target{said: said}
	fail := func(why error) (Target, error) {
		said := password().ReplaceAllString(said, "$1:xxxxx@")
		if why == nil {
			return t, fmt.Errorf("%q %w; %s", said, ErrTarget, remedyOfTarget)
		}
		return t, fmt.Errorf("%q %w: %w; %s", said, ErrTarget, why, remedyOfTarget)
	}
	scheme, rest, ok := strings.Cut(said, ":")
	if !ok {
		return fail(nil)
	}
	if scheme == "exec" {
		var err error
		if t.argv, err = words(rest); err != nil {
			return fail(err)
		}
		return t, nil
	}
	if !slices.Contains([]string{"ssh", "docker", "podman", "kube", "unix"}, scheme) {
		return fail(nil)
	}
	if scheme == "kube" {
		if err := t.kube(rest); err != nil {
			return fail(err)
		}
		return t, nil
	}
	u, err := url.Parse(said)
	if err != nil {
		return fail(errors.Unwrap(err)) // The outer one says the whole again.
	}
	if scheme == "unix" {
		if t.socket, err = socketOf(u); err != nil {
			return fail(err)
		}
		return t, nil
	}
	_, secret := u.User.Password()
	switch {
	case u.Hostname() == "":
		return fail(errors.New("it names no machine"))
	case strings.HasPrefix(u.Hostname(), "-"), strings.HasPrefix(u.User.Username(), "-"):
		return fail(errors.New("a name cannot begin with a dash"))
	case secret:
		return fail(errors.New("it can have no password"))
	case u.Path != "" && u.Path != "/", u.RawQuery != "", u.Fragment != "", u.Opaque != "":
		return fail(errors.New("it has more than a machine"))
	case scheme != "ssh" && u.Port() != "":
		return fail(errors.New("it can have no port"))
	case u.Port() != "" && !isPort(u.Port()):
		return fail(errors.New("a port is a number from 1 to 65535"))
	}
	if scheme == "ssh" {
		t.ssh(u)
	} else {
		t.argv, t.box = []string{scheme, "exec", "-i"}, true
		if user := u.User.Username(); user != "" {
			t.argv = append(t.argv, "-u", user)
		}
		t.argv = append(t.argv, u.Hostname(), "sh")
	}
	return t, nil
}

// isPort reports whether ssh takes a text for a port.
func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// password is that of a URL, which is in no error.
var password = lazyregexp.New(`^(\w+://[^/@:]*):[^/@]*@`)

// socketOf is the path of the socket that a URL names.
func socketOf(u *url.URL) (string, error) {
	switch {
	case u.OmitHost || u.Host != "" || u.User != nil || !path.IsAbs(u.Path):
		return "", errors.New("it wants an absolute path, behind three slashes: unix:///run/limpet.sock")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", errors.New("it has more than a path: write %3F for a question mark, and %23 for a #")
	case strings.HasSuffix(u.Path, "/") || strings.Contains(u.Path, "\x00"):
		return "", errors.New("its path is none of a socket")
	}
	return path.Clean(u.Path), nil
}

// ssh has the target be reached by ssh. What a configuration may have for people, and would spoil the pipe, is taken back. A connection
// that is shared by ControlMaster is used, and none is made.
func (t *Target) ssh(u *url.URL) {
	t.argv = []string{"ssh", "-T"}
	for _, option := range []string{
		"IgnoreUnknown=SessionType,RemoteCommand", "ControlMaster=no", "ClearAllForwardings=yes", "RemoteCommand=none", "SessionType=default", "PermitLocalCommand=no",
	} {
		t.argv = append(t.argv, "-o", option)
	}
	t.person = true
	t.asks = []string{"-o", "BatchMode=yes"}
	if u.Port() != "" {
		t.argv = append(t.argv, "-p", u.Port())
	}
	if user := u.User.Username(); user != "" {
		t.argv = append(t.argv, "-l", user)
	}
	t.argv = append(t.argv, "--", u.Hostname(), "exec sh")
}

// kube has the target be reached by kubectl. Three names have no context: one cannot be told from a namespace.
func (t *Target) kube(rest string) error {
	rest, ok := strings.CutPrefix(rest, "//")
	parts := strings.Split(rest, "/")
	const container, most = 3, 4
	if !ok || len(parts) < container-1 || len(parts) > most {
		return errors.New("it wants a namespace and a pod")
	}
	for i, part := range parts {
		name, err := url.PathUnescape(part)
		switch {
		case err != nil:
			return err
		case name == "" && i < container:
			return errors.New("a name is empty")
		case strings.HasPrefix(name, "-"):
			return errors.New("a name cannot begin with a dash")
		case strings.ContainsAny(part, "?#@:"):
			return errors.New("a name has letters, digits, dots and dashes; what else is in that of a context is escaped, as %2F for a slash")
		}
		parts[i] = name
	}
	t.argv, t.box = []string{"kubectl", "exec", "-i"}, true
	if len(parts) == most {
		t.argv = append(t.argv, "--context", parts[0])
		parts = parts[1:]
	}
	t.argv = append(t.argv, "-n", parts[0], parts[1])
	if len(parts) == container && parts[2] != "" {
		t.argv = append(t.argv, "-c", parts[2])
	}
	t.argv = append(t.argv, "--", "sh")
	return nil
}

// command is the argv, for a caller with a person at a terminal or not. A person can be asked for a password, and the keys of the
// terminal are for limpet alone all the same.
func (t Target) command(person bool) (argv []string, own bool) {
	switch {
	case person && t.person:
		return append([]string{"sh", "-c", `trap "" INT QUIT TSTP; exec "$@"`, "sh"}, t.argv...), false
	default:
		return slices.Insert(slices.Clone(t.argv), 1, t.asks...), true
	}
}

// without is the target without a connection that another ssh shares, if that may be why it was not reached: nothing was heard.
func (t Target) without(err error) (Target, bool) {
	if t.socket != "" || t.argv[0] != "ssh" || !errors.Is(err, errMute) || slices.Contains(t.argv, "-S") {
		return t, false
	}
	t.argv = slices.Insert(slices.Clone(t.argv), 1, "-S", "none")
	return t, true
}

// words are those of a simple command, as bash would take them.
func words(text string) ([]string, error) {
	file, err := syntax.NewParser().Parse(strings.NewReader(text), "")
	if err != nil {
		return nil, err
	}
	if len(file.Stmts) != 1 {
		return nil, errors.New("it wants one command")
	}
	stmt := file.Stmts[0]
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 || len(call.Assigns) > 0 || len(stmt.Redirs) > 0 || stmt.Background || stmt.Negated {
		return nil, errors.New("it wants words alone: write sh -c '...' for more")
	}
	var argv []string
	for _, word := range call.Args {
		text, err := literal(word.Parts, false)
		if err != nil {
			return nil, err
		}
		argv = append(argv, text)
	}
	return argv, nil
}

// literal is the text of a word without expansions. In quotes a backslash means less.
func literal(parts []syntax.WordPart, quoted bool) (string, error) {
	var b strings.Builder
	for _, part := range parts {
		switch part := part.(type) {
		case *syntax.Lit:
			for i := 0; i < len(part.Value); i++ {
				if part.Value[i] == '\\' && i+1 < len(part.Value) && (!quoted || strings.IndexByte("$`\"\\", part.Value[i+1]) >= 0) {
					i++
				}
				b.WriteByte(part.Value[i])
			}
		case *syntax.SglQuoted:
			if part.Dollar {
				return "", errors.New("it can have no $'...'")
			}
			b.WriteString(part.Value)
		case *syntax.DblQuoted:
			text, err := literal(part.Parts, true)
			if err != nil {
				return "", err
			}
			b.WriteString(text)
		default:
			return "", errors.New("nothing is expanded there: quote it, or write sh -c '...'")
		}
	}
	return b.String(), nil
}
