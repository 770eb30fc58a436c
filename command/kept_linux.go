package command

import "os"

// lseek(2): seek to the next data, to the next hole.
const (
	seekData = 3
	seekHole = 4
)

// readKept reads at off unless a hole is there: the middle of a long output
// was given back to the file system and must not come out as zeros.
func readKept(f *os.File, p []byte, off int64) (int, error) {
	data, err := f.Seek(off, seekData)
	if err != nil || data != off {
		return 0, ErrOmitted
	}
	hole, err := f.Seek(off, seekHole)
	if err != nil {
		return 0, err
	}
	return f.ReadAt(p[:min(int64(len(p)), hole-off)], off)
}

// keptRanges lists what the file at Path holds between two offsets.
func (o Output) keptRanges(from, to int64) [][2]int64 {
	f, err := os.Open(o.Path)
	if err != nil {
		return nil
	}
	defer f.Close() // Read only: nothing to lose.
	var ranges [][2]int64
	for from < to {
		data, err := f.Seek(from, seekData)
		if err != nil || data >= to { // ENXIO: no data behind from.
			break
		}
		hole, err := f.Seek(data, seekHole)
		if err != nil {
			break
		}
		ranges = append(ranges, [2]int64{data, min(hole, to)})
		from = hole
	}
	return ranges
}
