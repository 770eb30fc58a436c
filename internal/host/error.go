package host

import (
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"github.com/limpet-sh/limpet/internal/errtext"
	"github.com/limpet-sh/limpet/internal/lazyregexp"
	"github.com/limpet-sh/limpet/internal/runes"
	"github.com/limpet-sh/limpet/internal/wire"
)

// What is wrong with a connection, for errors.Is.
var (
	// ErrUnreached means that the machine was not reached: nothing ran there.
	ErrUnreached = errors.New("the machine was not reached")

	// ErrLost means that the connection to the machine is lost. What is kept there stays.
	ErrLost = errors.New("the connection is lost")
)

// Error says why a machine is not reached, or not any more.
type Error struct {
	Op     string // "reach", "bring limpet to"
	Target string
	Err    error
	Said   string // the last of what was said on standard error, and before there was a limpet, in a line; for people
	Remedy string
}

func (e *Error) Error() string {
	err := e.Err
	if e.Said != "" {
		err = fmt.Errorf("%w; it said: %s", err, end(e.Said))
	}
	return errtext.Of("remote", e.Op, e.Target, err, e.Remedy)
}

func (e *Error) Unwrap() error { return e.Err }

// Is reports that a connection which is lost cannot be asked, for who asks a session.
func (e *Error) Is(target error) bool {
	return target == wire.ErrUnreachable && errors.Is(e.Err, ErrLost)
}

// versionError means that the limpet over there does not speak this version of the protocol.
type versionError struct {
	version        string
	oldest, newest int
}

func (e *versionError) Error() string {
	return fmt.Sprintf("limpet %s is there, which speaks versions %d to %d of the protocol, and this one speaks %d", plain([]byte(e.version)), e.oldest, e.newest, wire.Version)
}

// endedError means that the command which reaches a machine has ended.
type endedError struct {
	name   string
	code   int
	signal syscall.Signal // 0 if none has ended it
	within bool           // it had reached a sh, which had answered
}

func (e *endedError) Error() string {
	if e.signal != 0 {
		return fmt.Sprintf("%s was ended by signal %d (%v)", e.name, int(e.signal), e.signal)
	}
	return fmt.Sprintf("%s ended with exit code %d", e.name, e.code)
}

// remedy is what to do about a command that said nothing which is known.
func (e *endedError) remedy() string {
	const failed = 255 // Of ssh itself. Another one is of what was executed over there.
	switch {
	case e.within:
		return "" // Limpet over there, or what kills it, has said what there is to say.
	case e.name == "ssh" && e.code == failed:
		return "ssh -v HOST true says more"
	case e.name == "ssh" && e.signal == 0:
		return "the account over there, a startup file or a ForceCommand ends the login: try ssh HOST exec sh, which is to read commands from its standard input"
	default:
		return "try it by hand: it is to reach a POSIX sh that reads commands from its standard input"
	}
}

// remedyOf is what to do about an error, or about what a command said that has no other way to say what is wrong; empty if that is not
// known.
func remedyOf(err error, said string) string {
	switch {
	case errors.Is(err, ErrNoBash):
		return "install bash there"
	case errors.Is(err, ErrNoProgram):
		return "install limpet there, or put one for that system beside this one, or into the directory that --agents or LIMPET_AGENTS names"
	case errors.Is(err, ErrPart):
		return "have limpet itself there, as it is here, in the PATH or at the socket"
	case errors.Is(err, ErrNoPlace) && errors.As(err, new(*hangsError)):
		return "have that limpet answer"
	case errors.Is(err, ErrNoPlace):
		return "have limpet in the PATH there, or set XDG_CACHE_HOME there to a directory that is the user's alone, and in which programs can be executed"
	case errors.Is(err, errEcho):
		return "what is reached there is to be a POSIX sh, and without a terminal: leave -t out"
	case errors.Is(err, errForeign):
		return "have it made by this user or by root"
	case errors.Is(err, errOffer):
		return "each connection to it is to reach a limpet connect --stdio of its own; for a POSIX sh at a socket, use exec: with a command that connects to it"
	case errors.Is(err, exec.ErrNotFound):
		return "install it, or name its path by exec:"
	}
	if e, ok := errors.AsType[*versionError](err); ok {
		if e.newest < wire.Version {
			return "update the limpet over there"
		}
		return "update this limpet"
	}
	for _, one := range remedies {
		if strings.Contains(said, one.said) {
			return one.remedy
		}
	}
	if e, ok := errors.AsType[*endedError](err); ok {
		return e.remedy()
	}
	return ""
}

// remedies are for what ssh(1), docker(1), podman(1) and kubectl(1) say. The first counts. What is final is the same the next time, unless somebody does
// something about it.
var remedies = []struct {
	said, remedy string
	final        bool
}{
	{"REMOTE HOST IDENTIFICATION HAS CHANGED", "if the machine was made anew, ssh-keygen -R HOST forgets its old key; if not, somebody may be in between", true},
	{"Host key verification failed", "its key is not known, and nobody is there to be asked: connect once by ssh HOST, and look at the key", true},
	{"Permission denied (", "ssh has no key that is accepted there without a question, and nobody is there to be asked: see ssh-add(1), and try ssh HOST true", true},
	{"Could not resolve hostname", "is the name right? ssh -G HOST says what ssh makes of it", false},
	{"Connection refused", "does sshd run there, on that port?", false},
	{"timed out", "is the machine on, and its network?", false},
	{"No route to host", "is the machine on, and its network?", false},
	{"Network is unreachable", "is there a network here?", false},
	{"no container with name or ID", "is the name right? podman ps --all has those that there are", true}, // It says "no such container", too.
	{"o such container", "is the name right? docker ps --all has those that there are", true},
	{"is not running", "start it: docker start CONTAINER", true},
	{"container state improper", "start it: podman start CONTAINER", true},
	{"annot connect to the Docker daemon", "does the daemon run, and is DOCKER_HOST right?", false},
	{"(Forbidden)", "the cluster does not allow it: kubectl auth can-i create pods/exec -n NAMESPACE says what it allows", true},
	{"You must be logged in to the server", "kubectl has no right to the cluster, or not any more: does kubectl get pods work?", true},
	{"(Unauthorized)", "kubectl has no right to the cluster any more: does kubectl get pods work?", true},
	{"namespaces \"", "is the name right? kubectl get namespaces has those that there are", true},
	{"pods \"", "is the name right, and the namespace? kubectl get pods -n NAMESPACE has those that there are", true},
	{"is not valid for pod", "kubectl get pod POD -n NAMESPACE -o jsonpath={.spec.containers[*].name} has the names of its containers", true},
	{"in a completed pod", "the pod has ended: make it again", true},
	{"container not found (", "its container does not run: kubectl describe pod POD -n NAMESPACE says why", false},
	{"does not have a host assigned", "no node has the pod yet: kubectl describe pod POD -n NAMESPACE says why", false},
	{"error: context \"", "kubectl config get-contexts has those that there are", true},
	{"did you specify the right host or port", "is KUBECONFIG right? kubectl config get-contexts has the clusters that there are", false},
	{"Unable to connect to the server", "is the cluster's address right, and KUBECONFIG? kubectl cluster-info says whether the cluster answers", false},
	{"o space left on device", "make room there", false},
	{"executable file not found", "the container has no sh", true},
	{"executable file `sh` not found", "the container has no sh", true}, // So says crun(1).
}

// plain is what another machine says, without what a terminal would obey.
func plain(b []byte) string {
	text := strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return -1
	}, strings.ToValidUTF8(string(b), "?"))
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(gist(lines), "; ")
}

// What programs log, beside what they say: klog of kubectl, in which one failure comes four times, and logrus of docker and podman.
var logged = []func() *regexp.Regexp{
	lazyregexp.New(`^[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [^ ]+:\d+\] (.*)`),
	lazyregexp.New(`^time="[^"]*" level=\w+ (.*)`),
}

// field finds the cause in such a line.
var field = lazyregexp.New(`\b(?:err|msg)=("(?:[^"\\]|\\.)*")`)

// gist is what matters of lines: what a program says, and what it has logged, each once and without what only its programmers
// want to know. What was logged before the program said something is left out: that says what the failure is.
func gist(lines []string) []string {
	var said, logs []string
	for _, line := range lines {
		text, isLog := unlogged(line)
		switch {
		case !isLog:
			said, logs = append(said, line), nil
		case !slices.Contains(logs, text):
			logs = append(logs, text)
		}
	}
	return append(said, logs...)
}

// unlogged returns the cause in a line that is logged.
func unlogged(line string) (text string, isLog bool) {
	for _, one := range logged {
		m := one().FindStringSubmatch(line)
		if m == nil {
			continue
		}
		if f := field().FindStringSubmatch(m[1]); f != nil {
			if text, err := strconv.Unquote(f[1]); err == nil {
				return strings.Join(strings.Fields(text), " "), true
			}
		}
		return m[1], true
	}
	return line, false
}

// end is no more of a text than fits into a sentence.
func end(text string) string {
	const most = 500
	if len(text) <= most {
		return text
	}
	text = text[len(text)-most:]
	return "..." + text[runes.BrokenStart([]byte(text)):]
}
