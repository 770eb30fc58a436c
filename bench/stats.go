package main

import (
	"fmt"
	"slices"
	"time"
)

// median is what half of the samples do not exceed, 0 of none. On a shared machine
// it says more than a mean, which a single pause can move.
func median[T ~int64](samples []T) T {
	if len(samples) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	low, high := sorted[(len(sorted)-1)/2], sorted[len(sorted)/2]
	return low + (high-low)/2
}

// show prints three digits of a duration.
func show(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return digits(float64(d)/float64(time.Microsecond)) + " µs"
	case d < time.Second:
		return digits(float64(d)/float64(time.Millisecond)) + " ms"
	}
	return digits(d.Seconds()) + " s"
}

// digits prints three of them.
func digits(x float64) string {
	switch {
	case x >= 100:
		return fmt.Sprintf("%.0f", x)
	case x >= 10:
		return fmt.Sprintf("%.1f", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// mb prints bytes in MB.
func mb(bytes int64) string { return digits(float64(bytes)/megabyte) + " MB" }
