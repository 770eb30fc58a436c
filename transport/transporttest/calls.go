package transporttest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
)

// 1. `sleep 1000 & echo hi` returns at once; what the job prints later is in
// no other command's result.
func backgroundChild(t *testing.T, s suite) {
	x := s.start(t)
	x.want("hi\n", "sleep 1000 & echo hi")
	x.want("", "mkfifo go; { read <go; echo late; echo late >&2; echo >printed; } &")
	x.want("between\n", "echo between; echo >go")
	testenv.AwaitFile(t, x.file("printed"))
	x.want("after\n", "echo after")
	res := x.run("sleep 1001 &")
	require.Len(t, res.Receipt.Leftover, 1)
	assert.Equal(t, x.printedPID("echo $!"), res.Receipt.Leftover[0].PID)
}

// 2. A silent holder of the output does not hang the call.
func silentHolder(t *testing.T, s suite) {
	for _, holder := range []string{
		"setsid sleep 1000 & echo hi",
		"setsid -f sleep 1000; echo hi",
		"nohup sleep 1000 2>/dev/null & echo hi",
		"sleep 1000 & disown; echo hi",
		"exec 9< <(sleep 1000); echo hi",
		": <(sleep 1000); echo hi",
		"(sleep 1000 &) ; echo hi",
		"bash -c 'sleep 1000 & exit 0'; echo hi",
		"coproc sleep 1000; echo hi",
	} {
		x := s.start(t)
		x.want("hi\n", holder)
		x.want("again\n", "echo again")
	}
}

// 3. No fixed waits: `true` with a 600 s timeout is back in under 20 ms. A wait that is
// built in is in every call, so the fastest one shows it; what else the machine does is
// in the others, and decides nothing. The median is logged: it should be below 1 ms.
func noFixedWaits(t *testing.T, s suite) {
	x := s.start(t)
	const fixed = 20 * time.Millisecond
	took := make([]time.Duration, 200)
	for i := range took {
		res, err := x.do(command.Request{Script: "true", Timeout: 600 * time.Second})
		require.NoError(t, err)
		took[i] = res.Elapsed
	}
	slices.Sort(took)
	t.Logf("true took %v at best, %v in the median, %v at worst", took[0], took[len(took)/2], took[len(took)-1])
	assert.Less(t, took[0], fixed, "the fastest of %d", len(took))
}

// 4. 1000 fast exits in a row give 1000 times stderr and status.
func fastExits(t *testing.T, s suite) {
	x := s.start(t)
	for i := range 1000 {
		script := fmt.Sprintf("echo err%d >&2; (exit %d)", i, i%256)
		if i%2 == 1 {
			script = fmt.Sprintf("/bin/sh -c 'echo err%d >&2; exit %d'", i, i%256)
		}
		res := x.run(script)
		require.Equal(t, fmt.Sprintf("err%d\n", i), res.Stderr.String())
		require.Equal(t, i%256, res.ExitCode)
		require.Empty(t, res.Stdout.String())
	}
}

// 5. Output can neither forge nor eat the status; a late notice never reaches
// the next result.
func forgedStatus(t *testing.T, s suite) {
	x := s.start(t)
	for _, c := range []struct {
		script string
		status int
	}{
		{`printf '%s 0 himBH / %s\n' 0123456789abcdef01234567 0123456789abcdef01234567; (exit 3)`, 3},
		{`printf 'no newline'; (exit 4)`, 4},
		{`printf '\0\0\n\0'; (exit 5)`, 5},
		{`printf '\033[2J\r\n'; (exit 6)`, 6},
		{`head -c 300000 /dev/zero; (exit 7)`, 7},
		{`echo '; exit 0 # '"'"' EOF'; (exit 8)`, 8},
		{`exec 1>&- 2>&-; (exit 9)`, 9},
		{`for fd in {3..255}; do eval "exec $fd>&-"; done 2>/dev/null; (exit 10)`, 10},
	} {
		// Each in a shell of its own: the last rows do it damage on purpose.
		y := s.start(t)
		res := y.run(c.script)
		assert.Equal(t, c.status, res.ExitCode, c.script)
		y.want("clean\n", "echo clean")
	}
	x.want("", "sleep 1000 & sleep 1001 &")
	x.run("kill -9 %1; kill -9 %2")
	testenv.Await(t, "the jobs' end", func() bool { return len(testenv.Marked(x.mark)) == 1 })
	x.want("no notice\n", "echo no notice")
	x.want("nor now\n", "echo nor now")
	// A job that is killed while the next command runs gives no notice to it.
	x.want("", "sleep 1000 &")
	x.want("x\n", "p=$!; kill $p; while kill -0 $p 2>/dev/null; do :; done; echo x")
	x.want("y\n", "echo y")
}

// 6. An unclosed quote is status 2 at once, and the session is fine. An
// unclosed heredoc is what bash takes it for: it ends with the script, and a
// warning says so.
func unclosedQuote(t *testing.T, s suite) {
	for script, status := range map[string]int{
		`echo "abc`: 2, `echo 'abc`: 2, "echo `abc": 2, `echo $(abc`: 2, `echo $((1+`: 2, `echo ${x`: 2,
		"if true; then": 2, "{ echo": 2, "( echo": 2, "case x in": 2, "f() {": 2, "while :; do": 2,
		"echo a | ": 2, "echo &&": 2, "echo )": 2, "done": 2,
		"cat <<EOF; if\nabc\nEOF": 2, "echo $(cat <<EOF\nabc\nEOF": 2,
		`arr=(1 2`: 1, // As in bash -c.
	} {
		x := s.start(t)
		x.setState()
		for range 3 {
			res := x.run(script)
			assert.Equal(t, status, res.ExitCode, script)
			assert.NotEmpty(t, res.Stderr.String(), script)
			assert.Nil(t, res.Restart, script)
			res, err := x.do(command.Request{Script: "echo fine"})
			assert.NoError(t, err, "after %q", script)
			assert.Equal(t, "fine\n", res.Stdout.String(), "after %q", script)
		}
		x.wantState()
	}
	x := s.start(t)
	x.setState()
	for _, script := range []string{"cat <<EOF\nabc", "cat <<'EOF'\nabc\n"} {
		res := x.run(script)
		assert.Equal(t, "abc", strings.TrimSpace(res.Stdout.String()))
		assert.Contains(t, res.Stderr.String(), "here-document")
		x.want("fine\n", "echo fine")
	}
	x.wantState()
}
