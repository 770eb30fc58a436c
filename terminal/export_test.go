package terminal

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/limpet-sh/limpet/internal/proc"
	"github.com/limpet-sh/limpet/internal/tty"
)

// Foreground is the name of the program that leads the process group in the foreground.
func Foreground(t *Terminal) string {
	p, err := t.live("test")
	if err != nil {
		return ""
	}
	group, err := tty.Foreground(p.master)
	if err != nil || group <= 0 {
		return ""
	}
	name, _, _ := strings.Cut(proc.Command(group), " ")
	return filepath.Base(name)
}

func init() { feedFirst *= 20 }

// Mark is in the environment of what runs on the terminals of the registry.
func (r *Registry) Mark() string { return r.mark() }

// InMemory is how many terminals are in the registry's memory.
func InMemory(r *Registry) int { return len(r.mine()) }

// Retire has the output leave memory.
func Retire(t *Terminal) { t.retire() }

// LookAnew has the next Info ask the kernel.
func LookAnew(t *Terminal) {
	p := t.program()
	p.looks.mu.Lock()
	defer p.looks.mu.Unlock()
	p.looks.at = time.Time{}
}
