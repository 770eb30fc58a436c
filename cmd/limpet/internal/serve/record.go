package serve

import (
	"context"
	"sync"

	"github.com/spf13/cobra"

	"github.com/limpet-sh/limpet/internal/audit"
	"github.com/limpet-sh/limpet/internal/page"
)

// Auditor is what writes down what is done, as other commands of the program have it, by flags of its own.
type Auditor interface {
	// Add adds the flags to the command.
	Add(cmd *cobra.Command)

	// Open returns what writes a line, which is nil if the flags do not ask for it, and whether what cannot be written down is refused.
	Open(cmd *cobra.Command) (write func(context.Context, audit.Entry) error, required bool, err error)
}

// recorder writes down what people do by the page.
type recorder struct {
	write    func(context.Context, audit.Entry) error
	required bool
	note     func(format string, args ...any)

	mu   sync.Mutex
	told bool // that the last line could not be written
}

// record is for page.Options.Record.
func (r *recorder) record(ctx context.Context, a page.Act) error {
	e := audit.Person(a.Time, string(a.Kind), a.Session, a.About, a.Script, a.Answer, a.Typed, a.Err)
	e.From = "limpet serve"
	if a.By != "" {
		e.From += ", by the link " + a.By
	}
	err := r.write(ctx, e)
	r.mu.Lock()
	told := r.told
	r.told = err != nil
	r.mu.Unlock()
	if err != nil && !told {
		r.note("what is done on the page cannot be written down: %v", err)
	}
	if !r.required {
		return nil
	}
	return err
}
