package sandbox_test

import (
	"encoding/json"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// A running is a program that a test has started.
type running struct {
	cmd     *exec.Cmd
	stdin   io.WriteCloser
	orders  *json.Encoder
	replies chan reply    // closed when the program says nothing more
	ended   chan struct{} // closed when it was waited for
	said    *strings.Builder
}

// run starts a program.
func run(cmd *exec.Cmd, c config) (*running, error) {
	text, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	p := &running{cmd: cmd, replies: make(chan reply), ended: make(chan struct{}), said: &strings.Builder{}}
	cmd.Env, cmd.Stderr = append(cmd.Env, helperVar+"=program", configVar+"="+string(text)), p.said
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p.orders = json.NewEncoder(p.stdin)
	go func() {
		defer close(p.ended)
		defer cmd.Wait() //nolint:errcheck // How it ended is in its ProcessState.
		defer close(p.replies)
		for r, said := (reply{}), json.NewDecoder(stdout); said.Decode(&r) == nil; r = (reply{}) {
			p.replies <- r
		}
	}()
	return p, nil
}

// hear waits for a reply. There is none from a program that crashed or hangs.
func (p *running) hear() (reply, bool) {
	select {
	case r, ok := <-p.replies:
		return r, ok
	case <-time.After(testenv.Patience):
		return reply{}, false
	}
}

// end lets the program close its shell, if it still can. It reports whether it
// did.
func (p *running) end() bool {
	_ = p.stdin.Close() // It may have ended.
	patience := time.AfterFunc(testenv.Patience, p.kill)
	defer patience.Stop()
	for range p.replies { //nolint:revive // Nobody asked for them.
	}
	<-p.ended
	return p.cmd.ProcessState.Success()
}

// kill ends it as a crash would.
func (p *running) kill() { _ = p.cmd.Process.Kill() } // It may have ended.
