// Testreport reads what go test -json has printed, reruns of failed tests included, and
// prints what a person wants to know at its end: which tests were skipped, which are
// flaky, which failed, with the end of what those printed and the command that runs
// them again. It exits with 1 if something there is not allowed.
//
// A test is flaky if it failed, and passed when it was run again by itself.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	log := flag.String("log", "", "the `file` with the events of go test -json")
	skips := flag.String("skips", "", "the `file` with the tests that may be skipped; without it all may be")
	flaky := flag.String("flaky", "", "the `file` with the times that tests were flaky")
	sandbox := flag.Bool("sandbox", false, "a sandbox is to be had here: no test may be skipped for the want of one")
	flag.Parse()
	if flag.NArg() > 0 || *log == "" {
		flag.Usage()
		os.Exit(2)
	}
	ok, err := run(*log, *skips, *flaky, *sandbox)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testreport:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

func run(log, skips, flaky string, sandbox bool) (ok bool, err error) {
	f, err := os.Open(log)
	if err != nil {
		return false, err
	}
	defer f.Close()
	results, err := read(f)
	if err != nil {
		return false, fmt.Errorf("%s: %w", log, err)
	}
	may, err := readTable(skips)
	if err != nil {
		return false, err
	}
	seen, err := readTable(flaky)
	if err != nil {
		return false, err
	}
	r := report{out: os.Stdout, free: skips == "", may: may, seen: seen, sandbox: sandbox}
	return r.print(results), nil
}
