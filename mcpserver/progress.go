package mcpserver

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/limpet-sh/limpet/session"
)

// progress tells the client how far the call is, as often as Options say, until stop is
// called, which waits for what is being sent. The line is the last that there is to see, or
// empty. Clients that did not ask are told nothing (specification, "Progress").
func (c *call) progress(ctx context.Context, line func() string) (stop func()) {
	token := c.request.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	started, told := time.Now(), time.Duration(0)
	var sending sync.WaitGroup
	sending.Go(func() {
		tick := time.NewTicker(c.server.opts.Progress)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			// Hosts show the number as it is, and a fraction of a second is noise.
			now := time.Since(started).Truncate(min(c.server.opts.Progress, time.Second))
			if now <= told {
				continue // It has to grow.
			}
			told = now
			message := fmt.Sprintf("%.0f s", now.Seconds())
			last := line()
			if what := c.waitsFor.Load(); what != nil {
				last = *what
			}
			if last != "" {
				var names []string // What is shown is cut short: there is no room for them.
				message += ": " + c.server.mask(last, &names)
			}
			// A client that cannot be told is told the result, or is gone.
			_ = c.request.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: token, Progress: now.Seconds(), Message: message,
			})
		}
	})
	return func() {
		cancel()
		sending.Wait()
	}
}

// waits tells the client of a call that waits for a session's turn, and prints nothing. Call
// stop as that of progress.
func (c *call) waits(ctx context.Context, sess *session.Session) (stop func()) {
	return c.progress(ctx, func() string {
		info, _ := sess.Info(ctx)
		return behind(info)
	})
}

// behind says what is waited for.
func behind(info session.Info) string {
	if info.Running == "" {
		return ""
	}
	return "waits for its turn behind: " + held(info)
}

// held is what runs in a session, in short, and for whom, if that is known.
func held(info session.Info) string {
	text := brief(info.Running)
	if info.Holder != "" {
		text += " (for " + info.Holder + ")"
	}
	return text
}

// lastLine is a Writer that remembers the end of what is written to it. It is safe for
// concurrent use.
type lastLine struct {
	mu  sync.Mutex
	end []byte
}

// longestLine bounds what is remembered, and lineShown what is shown of it.
const (
	longestLine = 4 << 10
	lineShown   = 200
)

func (l *lastLine) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end = append(l.end, p[max(0, len(p)-longestLine):]...)
	if extra := len(l.end) - longestLine; extra > 0 {
		l.end = append(l.end[:0], l.end[extra:]...)
	}
	return len(p), nil
}

// String is the last line that is not blank.
func (l *lastLine) String() string {
	l.mu.Lock()
	end := bytes.Clone(l.end)
	l.mu.Unlock()
	return lastOf(plain(end, false))
}

// lastOf is the last line of a text that is not blank, cut to what is shown of one.
func lastOf(text string) string {
	text = strings.TrimRight(text, " \t\r\n")
	line := []rune(strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:]))
	if len(line) > lineShown {
		line = append(line[:lineShown-1], '…')
	}
	return string(line)
}
