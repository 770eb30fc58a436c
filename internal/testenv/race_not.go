//go:build !race

package testenv

// raceDetector is whether this program has it.
const raceDetector = false
