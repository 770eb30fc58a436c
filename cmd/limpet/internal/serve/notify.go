package serve

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/cmd/limpet/internal/noun"
	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/page"
	"github.com/limpet-sh/limpet/internal/runes"
	"github.com/limpet-sh/limpet/oneshot"
)

const (
	// notifyPatience is how long the command of --notify may take for one notice.
	notifyPatience = 30 * time.Second

	// mostSaid bounds what is told of a command that has failed, in characters.
	mostSaid = 200
)

// notifier runs a command for each notice. It is told of one at a time.
type notifier struct {
	command string
	runner  *oneshot.Runner
	note    func(format string, args ...any)
	failed  bool // the last command, and that was said
}

// newNotifier returns one for a command that bash can read. The caller closes it.
func newNotifier(cmd *cobra.Command, script string, note func(format string, args ...any)) (*notifier, error) {
	if err := (command.Request{Script: script}).Validate(); err != nil {
		return nil, noun.Usagef(cmd, "--notify: %v", err)
	}
	return &notifier{command: script, note: note, runner: oneshot.New(&oneshot.Options{Env: os.Environ(), Timeout: notifyPatience})}, nil
}

// tell runs the command, with the notice on its standard input, and never in its text: parts of a notice are of programs and agents.
func (n *notifier) tell(ctx context.Context, what page.Notice, missed int64) {
	text := what.Text
	if what.Session != "" {
		text = "session " + what.Session + ": " + text
	}
	if missed > 0 {
		text += fmt.Sprintf(" (%d notices before this one were missed)", missed)
	}
	res, err := n.runner.Do(ctx, command.Request{Script: n.command, Stdin: strings.NewReader(noun.OneLine(text) + "\n"), Env: []string{"LIMPET_NOTICE=" + what.Kind}})
	if err == nil {
		err = res.Err()
	}
	if ctx.Err() != nil || err == nil || n.failed {
		n.failed = err != nil
		return
	}
	n.failed = true
	said := noun.OneLine(runes.Brief(strings.TrimPrefix(err.Error(), "command: "), mostSaid))
	n.note("--notify: %s; its failures are not said again until it works", said)
}

func (n *notifier) close() {
	if err := n.runner.Close(); err != nil {
		n.note("--notify: %v", err)
	}
}
