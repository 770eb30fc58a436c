package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// write puts the results into a directory: everything, with the raw samples, as
// JSON under a name that says when and on what kind of machine; the page and
// the plot as the latest.
func (r *report) write(dir, page string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	name := fmt.Sprintf("%s-%s-%s-%dcpu", r.Date.Format("2006-01-02"), r.Machine.OS, r.Machine.Arch, r.Machine.Cores)
	if r.Quick {
		name += "-quick"
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, name+".json"), append(raw, '\n'), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "latest.md"), []byte(page), 0o644); err != nil {
		return err
	}
	return r.plot(filepath.Join(dir, "latest.svg"), filepath.Join(dir, "latest.png"))
}
