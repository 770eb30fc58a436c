package terminal_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/limpet-sh/limpet/terminal"
	"github.com/limpet-sh/limpet/terminal/keys"
)

func Example() {
	dir, err := os.MkdirTemp("", "terminals") // Empty means that of the user.
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	r, err := terminal.Open(dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer r.Close()

	ctx := context.Background()
	t, err := r.Start(ctx, terminal.Spec{Line: `read -rp 'your name? ' name; echo "hello $name"`, Size: terminal.Size{Cols: 40, Rows: 10}})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := t.Wait(ctx, terminal.WaitOptions{Prompt: true, Timeout: time.Minute}); err != nil {
		log.Fatal(err)
	}
	enter, err := keys.Key("Enter")
	if err != nil {
		log.Fatal(err)
	}
	if err := t.Send(keys.Text("limpet"), enter); err != nil {
		log.Fatal(err)
	}
	<-t.Done()
	s, err := t.Screen()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Text())
	fmt.Println(t.Info().State)
	// Output:
	// your name? limpet
	// hello limpet
	// succeeded
}
