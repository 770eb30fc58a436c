package serve

import (
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/limpet-sh/limpet/internal/private"
)

// openBrowser has the desktop's browser open a link, and does not wait for it. Other users can see the arguments of its process, so that
// it is given the path of a file, which leads to the link and which this user alone can read. The caller must call done, which removes the
// file, also after an error.
func openBrowser(link string) (done func(), err error) {
	name := "xdg-open"
	if runtime.GOOS == "darwin" {
		name = "open"
	}
	program, err := exec.LookPath(name)
	if err != nil {
		return func() {}, err
	}
	dir, err := private.MkdirTemp("", "limpet-serve-") // With mode 0700.
	if err != nil {
		return func() {}, err
	}
	done = func() { _ = os.RemoveAll(dir) } // The token in it is of no use any more.
	file := filepath.Join(dir, "limpet.html")
	text := fmt.Sprintf("<!doctype html><meta http-equiv=\"refresh\" content=\"0;url=%[1]s\"><a href=\"%[1]s\">limpet</a>\n", html.EscapeString(link))
	if err := private.WriteFile(file, []byte(text)); err != nil {
		return done, err
	}
	cmd := exec.Command(program, file)
	if err := cmd.Start(); err != nil {
		return done, fmt.Errorf("%s: %w", program, err)
	}
	// It is not waited for: some run for as long as the browser does, which is the user's, and outlives limpet.
	go func() { _ = cmd.Wait() }() // There is nothing to do about a desktop that opens nothing: the link was printed.
	return done, nil
}
