package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/host"
	"github.com/limpet-sh/limpet/internal/keeper"
	"github.com/limpet-sh/limpet/internal/wire"
)

// runElsewhere has limpet mcp run on another machine, as a command of a session there that ends with it: what a host says is the
// command's standard input, and so arrives once and in order over as many connections as it takes.
func (f *mcpFlags) runElsewhere(cmd *cobra.Command) error {
	if err := refuseIn(cmd, "--on", "http", "token-file", "keep-env"); err != nil {
		return err
	}
	if _, err := f.shell.environ(cmd); err != nil {
		return err
	}
	door, err := onStdio()
	if err != nil {
		return err
	}
	keepToItself()
	hide()
	outliveStderr()
	ctx, stop := untilSignal(cmd.Context())
	defer stop()
	console := newConsole()
	res, err := f.serveThere(ctx, cmd, door, console)
	err = errors.Join(err, door.close())
	if sig := gotSignal(ctx); sig != nil && !errors.Is(err, wire.ErrMayHaveRun) {
		return exit(codeOf(sig))
	}
	if err == nil && res.ExitCode != 0 {
		return exit(res.ExitCode) // It has said why.
	}
	return err
}

func (f *mcpFlags) serveThere(ctx context.Context, cmd *cobra.Command, door *stdio, console *console) (res command.Result, err error) {
	h, err := program(console.notef).DialWhole(ctx, f.on)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, h.Disconnect()) }()
	limpet := h.Hello().Executable
	if limpet == "" {
		return res, fmt.Errorf("%s: the limpet there is of an older version, and does not say where it is: install this one there", f.on.String())
	}
	s, err := h.Temporary(ctx, host.TemporaryName("mcp"), &keeper.Spec{})
	if err != nil {
		return res, err
	}
	defer s.Disconnect()
	return s.Do(ctx, command.Request{
		Script: "exec -a limpet " + quoted(append([]string{limpet, "mcp"}, f.there(cmd)...)),
		Dir:    f.shell.dir, Env: f.shell.env,
		Stdin: door.in, Stdout: door.out, Stderr: os.Stderr,
		Timeout: -1, IdleTimeout: -1, // The calls have theirs.
	})
}

// there are the flags of limpet mcp on the other machine: those of this one. Values of the environment are not among them: they may be
// secret, and others there can see what a command line has.
func (f *mcpFlags) there(cmd *cobra.Command) (args []string) {
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		switch list, ok := flag.Value.(pflag.SliceValue); {
		case flag.Name == "on", flag.Name == "agents", flag.Name == "env", flag.Name == "dir":
		case ok:
			for _, value := range list.GetSlice() {
				args = append(args, "--"+flag.Name+"="+value)
			}
		default:
			args = append(args, "--"+flag.Name+"="+flag.Value.String())
		}
	})
	for _, entry := range f.shell.env {
		name, _, _ := strings.Cut(entry, "=")
		args = append(args, "--keep-env="+name)
	}
	return args
}
