// Bench compares a persistent shell with a fresh bash per command, end to end:
//
//	go -C bench run .            # everything, which takes minutes
//	go -C bench run . -quick     # a tenth of the work
//	go -C bench run . -smoke     # each workload, once or twice: does it run at all?
//	go -C bench run . -only true,start
//
// It prints a Markdown table on stdout, and writes the raw samples, the table
// and a plot into results, in the current directory, which -C makes bench.
// README.md tells how to read them. It is a module of its own, so that what
// draws the plot is no dependency of the library. The exit
// code is 1 when something broke, but 0 when a target was missed: the machine
// may be busy, and the table says so.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	quick := flag.Bool("quick", false, "do a tenth of the work")
	smoke := flag.Bool("smoke", false, "run each workload as shortly as can be, and print and write no figures")
	only := flag.String("only", "", "comma-separated `workloads` to run: "+strings.Join(names(), ", "))
	out := flag.String("out", "", "`directory` for the results (default results, or results/partial after -quick or -only)")
	repo := flag.String("repo", "..", "git `repository` whose clone the hour workload works on")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *quick, *smoke, *only, *out, *repo)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, quick, smoke bool, only, out, repo string) error {
	chosen, err := choose(only)
	if err != nil {
		return err
	}
	if out == "" {
		out = "results"
		if quick || only != "" {
			// The results that README.md shows are those of a whole run.
			out = filepath.Join(out, "partial")
		}
	}
	b, err := newBench(ctx, quick || smoke, repo)
	if err != nil {
		return err
	}
	defer b.close()
	if smoke {
		b.smoke, b.share = true, 100
	}
	for _, w := range chosen {
		began := time.Now()
		b.progress("%s: %s ...", w.name, w.about)
		if err := w.run(b); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
		b.progress("%s: done in %.1f s", w.name, time.Since(began).Seconds())
	}
	if smoke {
		return nil // So few samples say nothing.
	}
	b.report.Machine.LoadAfter = loadAverage()
	text := b.report.markdown()
	fmt.Print(text)
	return b.report.write(out, text)
}

// choose returns the workloads that are asked for, in their own order.
func choose(only string) ([]workload, error) {
	if only == "" {
		return workloads, nil
	}
	asked := strings.Split(only, ",")
	for _, name := range asked {
		if !slices.Contains(names(), name) {
			return nil, fmt.Errorf("there is no workload %q; there are %s", name, strings.Join(names(), ", "))
		}
	}
	var chosen []workload
	for _, w := range workloads {
		if slices.Contains(asked, w.name) {
			chosen = append(chosen, w)
		}
	}
	return chosen, nil
}
