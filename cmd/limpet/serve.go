package main

import (
	"context"

	"github.com/spf13/cobra"

	page "github.com/limpet-sh/limpet/cmd/limpet/internal/serve"
	"github.com/limpet-sh/limpet/internal/audit"
)

// serveCommand is the page for people who watch.
func serveCommand() *cobra.Command { return page.Command(program(newConsole().notef), &pageAudit{}) }

// pageAudit are --audit and --audit-required for the page.
type pageAudit struct{ auditFlags }

func (a *pageAudit) Add(cmd *cobra.Command) { a.add(cmd) }

func (a *pageAudit) Open(cmd *cobra.Command) (write func(context.Context, audit.Entry) error, required bool, err error) {
	r, err := a.open(cmd)
	if r == nil {
		return nil, false, err
	}
	return r.write, a.required, nil
}
