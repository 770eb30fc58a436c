package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// quantile returns the value that the share q of the samples does not exceed,
// interpolated between two samples. Of no samples it is 0.
func quantile[T ~int64](samples []T, q float64) T {
	if len(samples) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	at := q * float64(len(sorted)-1)
	low := int(at)
	high := min(low+1, len(sorted)-1)
	part := at - float64(low)
	return sorted[low] + T(math.Round(part*float64(sorted[high]-sorted[low])))
}

// median is what half of the samples do not exceed. On a shared machine it says
// more than a mean, which a single pause can move.
func median[T ~int64](samples []T) T { return quantile(samples, 0.5) }

// p90 is what nine of ten samples do not exceed.
func p90[T ~int64](samples []T) T { return quantile(samples, 0.9) }

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
