package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/limpet-sh/limpet/internal/jsonhttp"
	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/keys"
)

type termSendFlags struct {
	where       *termFlags
	text, paste bool
	enter       bool
	wait        terminal.WaitOptions
	json        bool
	approve     approveFlag

	typed    string // the arguments and what was read, for people
	approved bool
	sent     bool  // all is typed
	from     int64 // the output before that
}

func termSendCommand(where *termFlags) *cobra.Command {
	flags := termSendFlags{where: where}
	cmd := &cobra.Command{
		Use:        "send [flags] id [key or text...]",
		SuggestFor: []string{"type", "write", "submit", "keys"},
		Short:      "Type keys and text into a terminal",
		Long: `Send types its arguments. One that is the name of a key is that key, as in Enter, Tab,
Up, F5, Ctrl-C or Alt-x, and any other is text, with nothing between them. With --text,
all are text, and with --paste they are pasted, as a person does with a mouse. An
argument - is the whole of standard input, as text. Names of keys: ` + "\n\n" + keyNames() + `

With one of the flags that wait, send waits for what the program does next, and prints
the screen. What was there before does not count; what the program echoes does, so
wait for more than was typed. The exit code is 124 if the time is over, and that of
the program if it has ended.

With --json, it prints a line of JSON.`,
		Example: `  limpet term send psql '\dt' Enter
  limpet term send --wait-prompt bash 'make test' Enter
  limpet term send --wait 'Password:' --timeout 10s ssh 'sudo true' Enter
  limpet term send --paste vim - <patch
  limpet term send python Ctrl-D`,
		Args: wants(1, math.MaxInt, oneTerm),
		RunE: where.run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			inputs, err := flags.inputs(cmd, args[1:])
			if err != nil {
				return err
			}
			return where.with(ctx, cmd, args[0], func(t *reached) error { return flags.send(ctx, cmd, t, inputs) })
		}),
	}
	w := &flags.wait
	cmd.Flags().SortFlags = false
	cmd.Flags().SetInterspersed(true)
	cmd.Flags().BoolVar(&flags.text, "text", false, "type the arguments as they are, also where they name keys")
	cmd.Flags().BoolVar(&flags.paste, "paste", false, "paste the arguments")
	cmd.Flags().BoolVar(&flags.enter, "enter", false, "type Enter behind all")
	cmd.Flags().StringVar(&w.Text, "wait", "", "wait until the `TEXT` is on the screen")
	cmd.Flags().StringVar(&w.Pattern, "wait-pattern", "", "wait until the screen matches `REGEXP` (RE2); (?m) makes ^ and $ those of a line")
	cmd.Flags().BoolVar(&w.Prompt, "wait-prompt", false, "wait until the program waits for input, or seems to")
	durationVar(cmd.Flags(), &w.Silence, "wait-silence", 0, "wait until the program has printed nothing for `TIME`, as in 1s")
	durationVar(cmd.Flags(), &w.Timeout, "timeout", 0, "wait no longer than `TIME` (default: 30s)")
	cmd.Flags().BoolVar(&flags.json, "json", false, "print a line of JSON")
	flags.approve.addInput(cmd)
	return cmd
}

// keyNames are the names of keys in lines.
func keyNames() string {
	const most = 84
	var lines []string
	line := " "
	for _, name := range keys.Names() {
		if len(line)+1+len(name) > most {
			lines, line = append(lines, line), " "
		}
		line += " " + name
	}
	return strings.Join(append(lines, line), "\n")
}

// waits are the flags that wait.
var sendWaits = []string{"wait", "wait-pattern", "wait-prompt", "wait-silence"}

func (f *termSendFlags) waits(cmd *cobra.Command) bool {
	return slices.ContainsFunc(sendWaits, cmd.Flags().Changed)
}

// inputs checks the flags, and makes what is to be typed of the arguments.
func (f *termSendFlags) inputs(cmd *cobra.Command, args []string) ([]keys.Input, error) {
	given := cmd.Flags().Changed
	if err := oneOf(cmd, "text", "paste"); err != nil {
		return nil, err
	}
	if err := oneOf(cmd, "wait", "wait-pattern"); err != nil {
		return nil, err
	}
	if err := timed(cmd, "wait-silence", "timeout"); err != nil {
		return nil, err
	}
	if given("wait-pattern") {
		if err := matchable(cmd, "wait-pattern", f.wait.Pattern); err != nil {
			return nil, err
		}
	}
	switch {
	case given("wait") && f.wait.Text == "":
		return nil, usagef(cmd, `--wait "": wants a text; is a variable empty?`)
	case given("timeout") && !f.waits(cmd):
		return nil, usagef(cmd, "--timeout means nothing without a flag that waits, such as --wait-prompt")
	case len(args) == 0 && !f.enter:
		return nil, usagef(cmd, "nothing to type: name keys or text, as in limpet term send ID ls Enter, or - for standard input")
	}
	if !given("timeout") {
		const sendPatience = 30 * time.Second
		f.wait.Timeout = sendPatience
	}
	var inputs []keys.Input
	shown := slices.Clone(args)
	for i, arg := range args {
		switch {
		case arg == "-" && (f.text || f.paste || i == slices.Index(args, "-")):
			if slices.Index(args, "-") != i {
				return nil, usagef(cmd, "standard input can be typed once")
			}
			if term.IsTerminal(int(os.Stdin.Fd())) {
				return nil, usagef(cmd, "- is standard input, which is a terminal: name keys or text, or use limpet term attach")
			}
			b, err := io.ReadAll(os.Stdin)
			if err != nil {
				return nil, fmt.Errorf("reading standard input: %w", err)
			}
			inputs, shown[i] = append(inputs, f.input(string(b))), string(b)
			if !f.text && !f.paste {
				shown[i] = "text:" + string(b) // It may be the name of a key.
			}
		case f.text || f.paste:
			inputs = append(inputs, f.input(arg))
		default:
			parsed, err := keys.Parse(arg)
			if err != nil {
				return nil, usagef(cmd, "%s", strings.TrimPrefix(err.Error(), "keys: "))
			}
			inputs = append(inputs, parsed...)
		}
	}
	if f.enter {
		enter, err := keys.Key("Enter")
		if err != nil {
			return nil, err
		}
		inputs, shown = append(inputs, enter), append(shown, "Enter")
	}
	f.typed = quoted(shown)
	if f.text || f.paste { // It may have many lines.
		f.typed = strings.Join(shown[:len(args)], "")
		if f.enter {
			f.typed += "\n"
		}
	}
	return inputs, nil
}

func (f *termSendFlags) input(text string) keys.Input {
	if f.paste {
		return keys.Paste(text)
	}
	return keys.Text(text)
}

// sentJSON is what "term send --json" prints.
type sentJSON struct {
	ID     string           `json:"id"`
	Waited *terminal.Waited `json:"waited,omitempty"` // null: it was not asked for
	Screen *string          `json:"screen,omitempty"` // as text
}

func (f *termSendFlags) send(ctx context.Context, cmd *cobra.Command, t *reached, inputs []keys.Input) error {
	if f.approve.mode != "off" && !f.approved {
		if len(f.typed) > mostShown {
			return fmt.Errorf("what is to be typed has more than %d bytes, which is too long for a question: read it, and type it by --approve off", mostShown)
		}
		if err := f.approve.input(ctx, cmd, f.where.console, t.info.ID, f.typed); err != nil {
			return err
		}
		f.approved, t.info = true, t.now() // A person may take long.
	}
	w := f.wait
	waits := w.Text != "" || w.Pattern != "" || w.Prompt || w.Silence > 0
	if !f.sent { // Else the program that had it has gone since, with the one that ran there.
		f.from = t.info.Bytes // As it is now: the terminal was just asked.
		if err := t.Send(inputs...); err != nil {
			if t.resumes && jsonhttp.Sent(err) {
				err = &lostError{fmt.Errorf("%w; it may have been typed, and is not typed again", err)}
			}
			return err
		}
		f.sent = true
	}
	w.From = f.from
	if !waits {
		if f.json {
			return writeJSON(os.Stdout, sentJSON{ID: t.info.ID})
		}
		return nil
	}
	got, err := t.Wait(ctx, w)
	if err != nil {
		return err
	}
	s, err := t.Screen()
	if err != nil {
		return err
	}
	text := s.Text()
	if f.json {
		err = writeJSON(os.Stdout, sentJSON{ID: t.info.ID, Waited: &got, Screen: &text})
	} else {
		_, err = fmt.Println(text)
	}
	switch {
	case err != nil:
		return err
	case got.Reason == terminal.WaitTimeout:
		if !f.json {
			f.where.console.notef("%s: the time is over, after %v", t.info.ID, got.Took.Round(time.Millisecond))
		}
		return exit(codeTimeout)
	case got.Reason == terminal.WaitExited:
		if !f.json {
			f.where.console.notef("%s: %s", t.info.ID, describeTerm(got.Info))
		}
		return exit(codeOfTerm(got.Info))
	}
	return nil
}
