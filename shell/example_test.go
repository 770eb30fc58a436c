package shell_test

import (
	"context"
	"fmt"
	"log"

	"github.com/limpet-sh/limpet/shell"
)

func Example() {
	ctx := context.Background()
	sh, err := shell.Start(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer sh.Close()

	for _, script := range []string{"cd /tmp; x=1", "echo $x in $PWD", "ls /nowhere"} {
		res, err := sh.Run(ctx, script)
		if err != nil {
			log.Fatal(err) // stopped, or bash was killed; an exit code is no error
		}
		fmt.Printf("%d %q\n", res.ExitCode, res.Stdout.String()+res.Stderr.String())
	}
	// Output:
	// 0 ""
	// 0 "1 in /tmp\n"
	// 2 "ls: cannot access '/nowhere': No such file or directory\n"
}
