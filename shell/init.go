package shell

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/script"
)

// init sources the init files.
func (b *bash) init(ctx context.Context) error {
	b.inPlace = true // What they set up is the session's own.
	defer func() { b.inPlace = false }()
	if b.opts.Login {
		// bash(1), INVOCATION: what a login shell reads.
		for _, script := range []string{
			`[[ ! -r /etc/profile ]] || . /etc/profile`,
			`if [[ -r ~/.bash_profile ]]; then . ~/.bash_profile
elif [[ -r ~/.bash_login ]]; then . ~/.bash_login
elif [[ -r ~/.profile ]]; then . ~/.profile; fi`,
		} {
			if _, err := b.initScript(ctx, script); err != nil {
				return err
			}
		}
	}
	for _, file := range b.opts.InitFiles {
		if abs, err := filepath.Abs(file); err == nil {
			file = abs
		}
		if err := b.initFile(ctx, file); err != nil {
			return err
		}
	}
	b.commands, b.status = 0, 0
	return nil
}

// initFile sources a file that must be there. Bash is asked: it may see other files
// than this program does.
func (b *bash) initFile(ctx context.Context, file string) error {
	name := script.Quote(file)
	res, err := b.initScript(ctx, "[[ -r "+name+" && ! -d "+name+" ]] || printf no")
	if err != nil {
		return err
	}
	if res.Stdout.Total > 0 {
		return &StartError{Argv: b.argv(), Code: -1, Err: fmt.Errorf("init file %q: %w", file, whyUnreadable(file))}
	}
	_, err = b.initScript(ctx, ". "+name)
	return err
}

func whyUnreadable(file string) error {
	f, err := os.Open(file)
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err // Its path was named.
	}
	if err == nil {
		_ = f.Close() // Read only.
	}
	return errUnreadable
}

var errUnreadable = errors.New("bash cannot read it, where it runs, or it is a directory")

func (b *bash) initScript(ctx context.Context, script string) (command.Result, error) {
	res, err := b.run(ctx, command.Request{Script: script, Timeout: -1, IdleTimeout: -1}, nil)
	if errors.Is(err, errStartTimeout) {
		return res, &StartError{Argv: b.argv(), Code: -1, Err: fmt.Errorf("%w (it was running: %s)", errStartTimeout, script)}
	}
	if _, stopped := errors.AsType[*InterruptError](err); b.dead() && !stopped {
		return res, b.startError(fmt.Errorf("it ended while it ran %s", script))
	}
	if err != nil {
		return res, b.startError(fmt.Errorf("running %s: %w", script, err))
	}
	if text := res.Stderr.String(); text != "" {
		b.opts.Logger.Warn("limpet: an init file complained", "script", script, "exit", res.ExitCode, "stderr", text)
	}
	return res, nil
}
