package mcpserver_test

import (
	"context"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/mcpserver"
)

// listener is a host that hears of resources.
type listener struct {
	*host
	updated, listed chan string
}

func listen(t *testing.T, version string) *listener {
	l := &listener{updated: make(chan string, 1000), listed: make(chan string, 1000)}
	l.host = connect(t, setup{version: version, server: mcpserver.Options{Updates: time.Millisecond}, client: mcp.ClientOptions{
		ResourceUpdatedHandler:     func(_ context.Context, req *mcp.ResourceUpdatedNotificationRequest) { l.updated <- req.Params.URI },
		ResourceListChangedHandler: func(context.Context, *mcp.ResourceListChangedRequest) { l.listed <- "" },
	}})
	return l
}

func (l *listener) resource(uri string) string {
	l.t.Helper()
	res, err := l.ReadResource(testenv.Context(l.t), &mcp.ReadResourceParams{URI: uri})
	require.NoError(l.t, err)
	require.Len(l.t, res.Contents, 1)
	assert.Equal(l.t, "text/plain", res.Contents[0].MIMEType)
	return res.Contents[0].Text
}

func (l *listener) uris() (uris []string) {
	l.t.Helper()
	list, err := l.ListResources(testenv.Context(l.t), nil)
	require.NoError(l.t, err)
	sessions := false
	for _, r := range list.Resources {
		if r.URI == "limpet://sessions" {
			sessions = true
			continue
		}
		uris = append(uris, r.URI)
	}
	require.True(l.t, sessions, "it is always there")
	return uris
}

// follow asks to be told of a resource, and returns what takes that back.
func (l *listener) follow(uri string) (stop func()) {
	l.t.Helper()
	require.NoError(l.t, l.Subscribe(testenv.Context(l.t), &mcp.SubscribeParams{URI: uri}))
	return func() {
		require.NoError(l.t, l.Unsubscribe(testenv.Context(l.t), &mcp.UnsubscribeParams{URI: uri}))
	}
}

func (l *listener) start(command string) (id, uri string) {
	l.t.Helper()
	out, _ := l.call("run_command", object{"session": "s", "command": command, "background": true})
	id = out["job"].(object)["job"].(string)
	return id, "limpet://jobs/" + id + "/log"
}

func TestJobsAndTerminalsAreListedAsResources(t *testing.T) {
	testenv.Slow(t)
	l := listen(t, "2025-11-25")
	assert.Empty(t, l.uris())
	l.run("s", "true")
	assert.Contains(t, l.resource("limpet://sessions"), "s: ")
	_, log := l.start("printf '\\033[1mhello\\033[0m\\n'")
	<-l.listed
	assert.Equal(t, []string{log}, l.uris())
	testenv.Await(t, "the output", func() bool { return l.resource(log) == "hello\n" })
	out, _ := l.call("terminal_create", object{"session": "s", "argv": []string{"cat"}})
	screen := "limpet://terminals/" + out["terminal"].(object)["terminal"].(string) + "/screen"
	assert.Equal(t, []string{log, screen}, l.uris())
	l.call("terminal_send_keys", object{"terminal": out["terminal"].(object)["terminal"], "text": "typed"})
	assert.Contains(t, l.resource(screen), "typed")

	for _, uri := range []string{"limpet://jobs/none/log", "limpet://terminals/none/screen", "limpet://jobs//log", "limpet://other", log + "/x"} {
		_, err := l.ReadResource(testenv.Context(t), &mcp.ReadResourceParams{URI: uri})
		assert.Error(t, err, uri)
	}
}

func TestWhoFollowsAResourceIsToldWhenItChanges(t *testing.T) {
	testenv.Slow(t)
	l := listen(t, "2025-11-25")
	dir := testenv.TempDir(t)
	l.run("s", "cd "+dir)
	id, log := l.start("until [[ -e a ]]; do sleep 0.01; done; echo one; until [[ -e b ]]; do sleep 0.01; done; echo two")
	stop := l.follow(log)
	l.run("s", ": >a")
	awaitUpdate(t, l, log)
	testenv.Await(t, "the first line", func() bool { return l.resource(log) == "one\n" })
	l.run("s", ": >b")
	for l.resource(log) != "one\ntwo\n" {
		awaitUpdate(t, l, log)
	}
	testenv.Await(t, "the end", func() bool {
		out, _ := l.call("job_poll", object{"job": id})
		return out["job"].(object)["state"] == "exited"
	})
	stop()

	out, _ := l.call("terminal_create", object{"session": "s", "argv": []string{"cat"}})
	term := out["terminal"].(object)["terminal"].(string)
	screen := "limpet://terminals/" + term + "/screen"
	stop = l.follow(screen)
	l.call("terminal_send_keys", object{"terminal": term, "text": "typed", "settle_seconds": 0})
	awaitUpdate(t, l, screen)
	stop()
	assert.Error(t, l.Subscribe(testenv.Context(t), &mcp.SubscribeParams{URI: "limpet://jobs/none/log"}))
}

// awaitUpdate waits until it is told that the resource has changed.
func awaitUpdate(t *testing.T, l *listener, uri string) {
	t.Helper()
	for {
		select {
		case one := <-l.updated:
			if one == uri {
				return
			}
		case <-time.After(testenv.Patience):
			require.FailNow(t, "nobody says that "+uri+" has changed")
		}
	}
}

func TestAClientThatGoesFollowsNothingAnyMore(t *testing.T) {
	l := listen(t, "2025-11-25")
	_, log := l.start("while :; do echo x; sleep 0.01; done")
	l.follow(log)
	awaitUpdate(t, l, log)
	// What is still followed at the end would be a goroutine that is left.
}

func TestALoudJobIsToldOfOnlySoOften(t *testing.T) {
	l := listen(t, "2025-11-25")
	_, log := l.start("for ((i = 0; i < 3000; i++)); do echo $i; done; sleep 0.1; for ((i = 0; i < 3000; i++)); do echo $i; done")
	l.follow(log)
	awaitUpdate(t, l, log)
	testenv.Await(t, "the end", func() bool {
		out, _ := l.call("job_list", object{"state": "finished"})
		return len(out["jobs"].([]any)) == 1
	})
	assert.Less(t, len(l.updated), 1000)
}
