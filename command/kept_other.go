//go:build !linux

package command

import "os"

// readKept reads at off. Only Linux gives the middle of a kept file back.
func readKept(f *os.File, p []byte, off int64) (int, error) { return f.ReadAt(p, off) }

func (o Output) keptRanges(from, to int64) [][2]int64 {
	if o.Path == "" {
		return nil
	}
	return [][2]int64{{from, to}}
}
