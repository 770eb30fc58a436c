package hosts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/limpet-sh/limpet/cmd/limpet/internal/noun"
	"github.com/limpet-sh/limpet/cmd/limpet/internal/sessions"
	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/transfer"
)

// copying is what limpet hosts copy was asked for.
type copying struct {
	on      sessions.On
	session string
	asJSON  bool
	quiet   bool

	source, dest string // without the colon
	out          bool   // to the other machine
}

func copyCommand(p sessions.Program) *cobra.Command {
	var c copying
	cmd := &cobra.Command{
		Use:        "copy --on target [flags] source dest",
		Aliases:    []string{"cp"},
		SuggestFor: []string{"scp", "rsync", "sftp", "upload", "download", "push", "pull"},
		Short:      "Copy files to another machine, or from it",
		Long: `Copy copies a file, or a directory with all that is in it, to another machine or from it, by the connection that limpet run --on
uses. Nothing but limpet is needed there.

A path that begins with a colon is of the other machine, --on says which one, and exactly one of the two paths has the colon. So
there is no doubt what is a machine and what is a path, whatever the target is: ssh://HOST:PORT, or a command. A file of this machine
whose name begins with a colon is ./:name. Over there a relative path begins at the home directory, as does ~/; with --session, at
the directory where that session is.

If dest is a directory, source is copied into it, under its own name. Else it is copied to dest, whose directory must be there.
SOURCE/. stands for what is in a directory. A file takes the place of a file without a question, at once and whole: a program
that opens it sees the old one or the new one. A directory is merged into one of its name. A directory and a file never take
each other's place.

Copied are contents, permissions without setuid, setgid and sticky bits, times of files and directories, and symbolic links as
links; one that is named as source, or as a directory dest, is followed. Owners, extended attributes, holes and hard links are
not. Nothing is written outside of dest, whatever the other machine says, and whatever links there are in dest. A fifo, a socket or a
device is skipped. What cannot be copied is said on standard error, and the rest is copied: the exit code is 1.

A file that has its size and time over there already is not sent again. If limpet is stopped, what has come of a file is beside it, as
.limpet-part-..., and the same command goes on from there. A connection that is lost is dialled again meanwhile. The SHA-256 of
each file is compared before it gets its name.

With --json, one object is printed on stdout: files, same (that were there already), dirs, links, bytes that went over, skipped and
errors, each a list of at most 100 of {"path", "why"}, with skipped_total and errors_total.`,
		Example: `  limpet hosts copy --on dev ./report.pdf :                     # to the home directory there
  limpet hosts copy --on dev :src/build.log .
  limpet hosts copy --on ssh://me@build-box:2222 ./site :/srv     # is /srv/site then
  limpet hosts copy --on docker://web :/etc/nginx/. ./nginx       # what is in it
  limpet hosts copy --on dev -s build :out/app ./app              # out is where the session is`,
		Args: noun.Wants(2, 2, "wants a source and a dest"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.understand(cmd, args); err != nil {
				return err
			}
			ctx, stop := p.Until(cmd.Context())
			defer stop()
			return c.run(ctx, p)
		},
	}
	c.on.Add(cmd, "the other machine, which is reached by `TARGET`; see limpet help run")
	cmd.Flags().StringVarP(&c.session, "session", "s", "", "begin relative paths over there where the session `NAME` is")
	cmd.Flags().BoolVarP(&c.quiet, "quiet", "q", false, "show no progress at a terminal")
	cmd.Flags().BoolVar(&c.asJSON, "json", false, "print what was copied, as a line of JSON")
	return cmd
}

// understand says which of the paths is over there.
func (c *copying) understand(cmd *cobra.Command, args []string) error {
	source, from := strings.CutPrefix(args[0], ":")
	dest, to := strings.CutPrefix(args[1], ":")
	for i, arg := range args {
		if arg == "" {
			return noun.Usagef(cmd, `"" is no path; is a variable empty? The home directory there is :`)
		}
		if strings.ContainsRune(arg, 0) {
			return noun.Usagef(cmd, "%q is no path", args[i])
		}
	}
	switch {
	case c.on.String() == "":
		if name, rest, ok := strings.Cut(args[0], ":"); ok && !from && name != "" {
			return noun.Usagef(cmd, "wants a machine: --on %s :%s", name, rest)
		}
		return noun.Usagef(cmd, "wants a machine: --on TARGET")
	case from && to:
		return noun.Usagef(cmd, "both paths begin with a colon: one has to be of this machine")
	case !from && !to:
		return noun.Usagef(cmd, "neither path begins with a colon, as that of the other machine does: :%s", args[1])
	}
	c.source, c.dest, c.out = source, dest, to
	return nil
}

func (c *copying) run(ctx context.Context, p sessions.Program) error {
	h, err := p.Dial(ctx, c.on)
	if err != nil {
		return err
	}
	defer func() { _ = h.Disconnect() }() // Nothing temporary was made.
	there, err := h.Files()
	if err != nil {
		return err
	}
	if err := c.enter(ctx, h); err != nil {
		return err
	}
	report := newReport(p)
	opts := &transfer.Options{Note: report.note, Lost: host.LostFiles}
	here := &transfer.Local{}
	from, to := transfer.Source(there), transfer.Sink(here)
	opts.FromMark = ":"
	if c.out {
		from, to, opts.FromMark, opts.ToMark = here, there, "", ":"
	}
	copier := transfer.New(from, to, opts)
	if !c.quiet && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(os.Stderr.Fd())) {
		report.show(copier)
	}
	err = copier.Copy(ctx, c.source, c.dest)
	report.end()
	if c.asJSON {
		if err := noun.JSON(os.Stdout, report.row(copier.Result(), err)); err != nil {
			return err
		}
	}
	if errors.Is(err, transfer.ErrPartly) {
		r := copier.Result()
		return fmt.Errorf("%w: %d of %d entries", err, r.Failed+r.Skipped, r.Failed+r.Skipped+r.Files+r.Same+r.Dirs+r.Links)
	}
	if ctx.Err() != nil {
		p.Note("what was copied stays; the same command goes on from there")
	}
	return err
}

// enter has relative paths over there begin where a session is.
func (c *copying) enter(ctx context.Context, h *host.Host) error {
	if c.session == "" {
		return nil
	}
	k, err := h.Session(ctx, c.session, nil)
	if err != nil {
		return err
	}
	defer k.Disconnect()
	info, err := k.Info(ctx)
	if err != nil {
		return err
	}
	far := &c.source
	if c.out {
		far = &c.dest
	}
	if !path.IsAbs(*far) && *far != "~" && !strings.HasPrefix(*far, "~/") {
		*far = info.Dir + "/" + *far
	}
	return nil
}
