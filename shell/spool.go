package shell

import (
	"os"
	"path/filepath"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/environ"
)

// spool keeps the files of the last long outputs. Whoever has the turn uses it.
type spool struct {
	dir   string
	max   int
	files []string
}

// spoolOutput keeps the file of a stream that does not fit into its Output, if
// the shell was asked to.
func (b *bash) spoolOutput(r *running, res *command.Result) {
	if b.opts.SpoolLimit <= b.opts.OutputLimit {
		return
	}
	spool := &b.shell.spool
	for fd, out := range map[int]*command.Output{1: &res.Stdout, 2: &res.Stderr} {
		if out.Omitted() <= 0 {
			continue
		}
		kept := filepath.Join(spool.dir, "spool-"+environ.NewID())
		if err := r.Move(fd, kept); err != nil {
			b.opts.Logger.Warn("limpet: a long output was not kept", "err", err)
			continue
		}
		out.Path = kept
		spool.add(kept)
	}
}

func (s *spool) add(path string) {
	s.files = append(s.files, path)
	for len(s.files) > s.max {
		_ = os.Remove(s.files[0]) // Gone already is as good.
		s.files = s.files[1:]
	}
}

func (s *spool) close() {
	for _, path := range s.files {
		_ = os.Remove(path) // As above.
	}
	s.files = nil
}
