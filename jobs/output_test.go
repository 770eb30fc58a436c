package jobs_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/jobs"
)

func offset(off int64) *int64 { return &off }

func TestOutputRollsAndSaysWhatWasDropped(t *testing.T) {
	r := open(t, nil)
	job, out := run(t, r, jobs.Spec{Command: "seq 1 200000"})
	var all bytes.Buffer
	for i := 1; i <= 200000; i++ {
		fmt.Fprintln(&all, i)
	}
	assert.EqualValues(t, all.Len(), job.Output.End)
	assert.GreaterOrEqual(t, len(out), 200<<10)
	assert.LessOrEqual(t, len(out), 300<<10)
	assert.Equal(t, all.String()[job.Output.First:], out)
	assert.LessOrEqual(t, testenv.Allocated(r.Dir()), int64(400<<10))

	log, err := r.Log(job.ID, jobs.LogOptions{Tail: 2})
	require.NoError(t, err)
	assert.Equal(t, "199999\n200000\n", log.Text)
	assert.EqualValues(t, 199999, log.Line)
	assert.EqualValues(t, all.Len()-14, log.Offset)
	assert.Zero(t, log.Dropped)

	log, err = r.Log(job.ID, jobs.LogOptions{Line: 199990, Lines: 3})
	require.NoError(t, err)
	assert.Equal(t, "199990\n199991\n199992\n", log.Text)
	assert.EqualValues(t, 199990, log.Line)

	log, err = r.Log(job.ID, jobs.LogOptions{Line: 5, Lines: 1})
	require.NoError(t, err)
	assert.Positive(t, log.Dropped)
	assert.Positive(t, log.Line, "the first that is kept")

	log, err = r.Log(job.ID, jobs.LogOptions{Offset: offset(0), Bytes: 10})
	require.NoError(t, err)
	assert.Equal(t, job.Output.First, log.Offset)
	assert.Equal(t, job.Output.First, log.Dropped)
	assert.Equal(t, all.String()[log.Offset:log.Next], log.Text)

	log, err = r.Log(job.ID, jobs.LogOptions{Offset: offset(-7)})
	require.NoError(t, err)
	assert.Equal(t, "200000\n", log.Text)

	found, err := r.Search(job.ID, "^19999[89]$", jobs.SearchOptions{})
	require.NoError(t, err)
	require.Len(t, found.Matches, 2)
	assert.EqualValues(t, 199998, found.Matches[0].Number)
	assert.Equal(t, "199998", found.Matches[0].Text)
	assert.Equal(t, "199998\n", all.String()[found.Matches[0].Offset:found.Matches[1].Offset])
	assert.Positive(t, found.Dropped)
	found, err = r.Search(job.ID, "9", jobs.SearchOptions{Max: 3})
	require.NoError(t, err)
	assert.Len(t, found.Matches, 3)
	assert.True(t, found.More)
}

func TestLogCountsLinesAndBytesFromBothEnds(t *testing.T) {
	r := open(t, nil)
	job, _ := run(t, r, jobs.Spec{Command: "printf 'one\\ntwo\\nthree\\nfour\\nrest'"})
	for _, row := range []struct {
		o    jobs.LogOptions
		want string
		line int64
	}{
		{jobs.LogOptions{}, "one\ntwo\nthree\nfour\nrest", 1},
		{jobs.LogOptions{Head: 2}, "one\ntwo\n", 1},
		{jobs.LogOptions{Head: 20}, "one\ntwo\nthree\nfour\nrest", 1},
		{jobs.LogOptions{Tail: 1}, "rest", 5},
		{jobs.LogOptions{Tail: 2}, "four\nrest", 4},
		{jobs.LogOptions{Tail: 20}, "one\ntwo\nthree\nfour\nrest", 1},
		{jobs.LogOptions{Line: 2}, "two\nthree\nfour\nrest", 2},
		{jobs.LogOptions{Line: 2, Lines: 2}, "two\nthree\n", 2},
		{jobs.LogOptions{Lines: 1}, "one\n", 1},
		{jobs.LogOptions{Line: 5}, "rest", 5},
		{jobs.LogOptions{Line: 6}, "", 5},
		{jobs.LogOptions{Offset: offset(4), Bytes: 5}, "two\nt", 2},
		{jobs.LogOptions{Offset: offset(100)}, "", 5},
		{jobs.LogOptions{Bytes: 3}, "one", 1},
		{jobs.LogOptions{Offset: offset(-4)}, "rest", 5},
		{jobs.LogOptions{Offset: offset(-400)}, "one\ntwo\nthree\nfour\nrest", 1},
	} {
		log, err := r.Log(job.ID, row.o)
		require.NoError(t, err)
		assert.Equal(t, row.want, log.Text, "%+v", row.o)
		assert.Equal(t, row.line, log.Line, "%+v", row.o)
	}
	for _, o := range []jobs.LogOptions{{Head: 1, Tail: 1}, {Head: -1}, {Tail: -1}, {Line: -1}, {Lines: -1}, {Bytes: -1}, {Bytes: 1, Lines: 1}} {
		_, err := r.Log(job.ID, o)
		assert.Error(t, err, "%+v", o)
	}
	_, err := r.Search(job.ID, "(", jobs.SearchOptions{})
	assert.ErrorContains(t, err, "missing closing )")
	found, err := r.Search(job.ID, "t$|^two", jobs.SearchOptions{From: 8})
	require.NoError(t, err)
	assert.Equal(t, []jobs.Match{{Number: 5, Offset: 19, Text: "rest"}}, found.Matches)
}

// Whole runes, at each border where a cut may come.
func TestTextIsWholeUTF8(t *testing.T) {
	r := open(t, &jobs.Options{OutputLimit: 1000})
	job, _ := run(t, r, jobs.Spec{Command: `for ((i = 0; i < 3000; i++)); do printf 'ä€😀'; done`})
	log, err := r.Log(job.ID, jobs.LogOptions{Offset: offset(0)})
	require.NoError(t, err)
	assert.Positive(t, log.Dropped)
	assert.True(t, utf8.ValidString(log.Text))
	for bytes := range 30 {
		log, err := r.Log(job.ID, jobs.LogOptions{Offset: offset(log.Offset), Bytes: bytes + 1})
		require.NoError(t, err)
		assert.True(t, utf8.ValidString(log.Text), "%d: %q", bytes, log.Text)
		assert.Equal(t, log.Offset+int64(len(log.Text)), log.Next)
	}
	log, err = r.Log(job.ID, jobs.LogOptions{Tail: 1})
	require.NoError(t, err)
	assert.True(t, utf8.ValidString(log.Text))

	// While it runs, the rest of a rune is to come.
	job = start(t, r, jobs.Spec{Command: `printf 'a\xe2\x82'; read x; printf '\xac\xff\xfe'`, Stdin: true})
	testenv.Await(t, "the output", func() bool { job, _ = r.Get(job.ID); return job.Output.End == 3 })
	p, err := r.Poll(job.ID, nil)
	require.NoError(t, err)
	assert.Equal(t, "a", p.New)
	assert.EqualValues(t, 2, p.More)
	require.NoError(t, r.Submit(job.ID, ""))
	end(t, r, job.ID)
	p, err = r.Poll(job.ID, nil)
	require.NoError(t, err)
	assert.Equal(t, "€\xff\xfe", p.New, "bytes that are no UTF-8 stay")
	assert.Zero(t, p.More)
}

func TestEscapeSequencesAreStrippedOnRequest(t *testing.T) {
	r := open(t, nil)
	job := start(t, r, jobs.Spec{Command: `printf '\e[1;31mred\e[0m and \e]0;title\aplain\n\e[3'; read x; printf '8;5;9mx\e[0m\n'`, Stdin: true})
	until(t, r, job.ID, "^red and plain$")
	testenv.Await(t, "the half sequence", func() bool {
		now, err := r.Get(job.ID)
		require.NoError(t, err)
		return now.Output.End == 38
	})
	p, err := r.Poll(job.ID, &jobs.PollOptions{Plain: true})
	require.NoError(t, err)
	assert.Equal(t, "red and plain\n", p.New)
	assert.Equal(t, "red and plain", p.Last[0])
	require.NoError(t, r.Submit(job.ID, ""))
	end(t, r, job.ID)
	p, err = r.Poll(job.ID, &jobs.PollOptions{Plain: true})
	require.NoError(t, err)
	assert.Equal(t, "x\n", p.New)
	log, err := r.Log(job.ID, jobs.LogOptions{Plain: true})
	require.NoError(t, err)
	assert.Equal(t, "red and plain\nx\n", log.Text)
	log, err = r.Log(job.ID, jobs.LogOptions{})
	require.NoError(t, err)
	assert.Equal(t, "\x1b[1;31mred\x1b[0m and \x1b]0;title\aplain\n\x1b[38;5;9mx\x1b[0m\n", log.Text)
}

func TestBashsOwnNoiseIsNoOutput(t *testing.T) {
	r := open(t, nil)
	for command, want := range map[string]string{
		`exec bash --norc -ic 'echo hello'`:           "hello\n",
		`exec /bin/bash --norc -ic 'echo hello'`:      "hello\n",
		`echo first; bash --norc -ic 'echo x' | wc`:   "", // Behind other output it is the job's.
		`printf 'bash: no job'`:                       "bash: no job",
		`printf 'bash: no job control in this house'`: "bash: no job control in this house",
		`echo 'bash: x: command not found'`:           "bash: x: command not found\n",
	} {
		_, out := run(t, r, jobs.Spec{Command: command})
		if want == "" {
			assert.Contains(t, out, "no job control")
			continue
		}
		assert.Equal(t, want, out, command)
	}
}

// Readers follow without gaps and without duplicates, as many as like, at their own
// speed.
func TestFollowersGetEverythingOnce(t *testing.T) {
	testenv.Slow(t)
	r := open(t, &jobs.Options{OutputLimit: 8 << 20})
	ctx := testenv.Context(t)
	job := start(t, r, jobs.Spec{Command: "for ((i = 0; i < 200; i++)); do seq $((i * 100)) $((i * 100 + 99)); done"})
	var want strings.Builder
	for i := range 20000 {
		fmt.Fprintln(&want, i)
	}
	var all sync.WaitGroup
	for n := range 5 {
		all.Go(func() {
			var got []byte
			for chunk, err := range r.Follow(ctx, job.ID, int64(n)) {
				if !assert.NoError(t, err) || !assert.EqualValues(t, len(got)+n, chunk.Offset) {
					return
				}
				assert.Zero(t, chunk.Dropped)
				got = append(got, chunk.Data...)
			}
			assert.Equal(t, want.String()[n:], string(got))
		})
	}
	all.Wait()
}

func TestASlowFollowerIsToldWhatItMissed(t *testing.T) {
	r := open(t, &jobs.Options{OutputLimit: 1000})
	job := start(t, r, jobs.Spec{Command: "echo begin; read x; seq 1 10000", Stdin: true})
	var got, missed int64
	for chunk, err := range r.Follow(testenv.Context(t), job.ID, 0) {
		require.NoError(t, err)
		require.Equal(t, got+missed+chunk.Dropped, chunk.Offset)
		if got == 0 {
			require.NoError(t, r.Submit(job.ID, ""))
			end(t, r, job.ID)
		}
		got, missed = got+int64(len(chunk.Data)), missed+chunk.Dropped
	}
	assert.Positive(t, missed)
	job, err := r.Get(job.ID)
	require.NoError(t, err)
	assert.Equal(t, job.Output.End, got+missed)
}

// Also when all of what it has seen is gone before it is read.
func TestAFollowerThatStandsStillIsToldWhatItMissed(t *testing.T) {
	r := open(t, nil)
	job := start(t, r, jobs.Spec{Command: "seq 1 20000; read x; seq 1 300000", Stdin: true})
	testenv.Await(t, "the first part", func() bool { job, _ = r.Get(job.ID); return job.Output.End == 108894 })
	var got, missed int64
	for chunk, err := range r.Follow(testenv.Context(t), job.ID, 0) {
		require.NoError(t, err)
		require.Equal(t, got+missed+chunk.Dropped, chunk.Offset)
		if got == 0 {
			require.NoError(t, r.Submit(job.ID, ""))
			end(t, r, job.ID)
		}
		got, missed = got+int64(len(chunk.Data)), missed+chunk.Dropped
	}
	job, err := r.Get(job.ID)
	require.NoError(t, err)
	assert.Positive(t, missed)
	assert.Equal(t, job.Output.End, got+missed)
}

func TestWhoFollowsAForgottenJobIsToldSo(t *testing.T) {
	dir := t.TempDir()
	r := openIn(t, dir, nil)
	reader := openIn(t, dir, &jobs.Options{ReadOnly: true})
	job := start(t, r, jobs.Spec{Command: "echo x; sleep 1000"})
	var last error
	for _, err := range reader.Follow(testenv.Context(t), job.ID, 0) {
		if last = err; err == nil {
			_, err := r.Stop(testenv.Context(t), job.ID)
			require.NoError(t, err)
			require.NoError(t, r.Forget(job.ID))
		}
	}
	assert.ErrorIs(t, last, jobs.ErrNotFound)
	_, err := reader.Wait(testenv.Context(t), jobs.WaitOptions{IDs: []string{job.ID}})
	assert.ErrorIs(t, err, jobs.ErrNotFound)
}

func TestBytesThatAreNoUTF8StayAndAreFlagged(t *testing.T) {
	r := open(t, nil)
	job, _ := run(t, r, jobs.Spec{Command: `printf 'A\x90hello \x9bworld\xff\n\e[31mmore\e[0m\n'`})
	log, err := r.Log(job.ID, jobs.LogOptions{Plain: true})
	require.NoError(t, err)
	assert.Equal(t, "A\x90hello \x9bworld\xff\nmore\n", log.Text)
	assert.True(t, log.Binary)
	found, err := r.Search(job.ID, "hello|more", jobs.SearchOptions{})
	require.NoError(t, err)
	assert.Len(t, found.Matches, 2)
	p, err := r.Poll(job.ID, nil)
	require.NoError(t, err)
	assert.True(t, p.Binary)
	job, _ = run(t, r, jobs.Spec{Command: `printf '\e]0;no end '; printf 'x%.0s' {1..2000}; echo; echo after`})
	until(t, r, job.ID, "^after$")
}

func TestFollowEndsWithItsContextAndForStrangers(t *testing.T) {
	r := open(t, nil)
	job := start(t, r, jobs.Spec{Command: "echo one; sleep 1000"})
	ctx, cancel := context.WithCancel(testenv.Context(t))
	var last error
	for chunk, err := range r.Follow(ctx, job.ID, 0) {
		if last = err; err == nil {
			assert.Equal(t, "one\n", string(chunk.Data))
			cancel()
		}
	}
	cancel()
	assert.ErrorIs(t, last, context.Canceled)
	for _, err := range r.Follow(testenv.Context(t), "job-nobody", 0) {
		last = err
	}
	assert.ErrorIs(t, last, jobs.ErrNotFound)
}

func TestPollSaysWhatIsNewOnce(t *testing.T) {
	r := open(t, nil)
	job := start(t, r, jobs.Spec{Command: "echo one; read x; echo two; read x", Stdin: true})
	until(t, r, job.ID, "one")
	p, err := r.Poll(job.ID, nil)
	require.NoError(t, err)
	assert.Equal(t, "one\n", p.New)
	assert.Equal(t, jobs.Running, p.Job.State)
	assert.Positive(t, p.Job.Elapsed)
	assert.Positive(t, p.Job.Quiet)
	assert.False(t, p.Job.LastOutput.IsZero())
	p, err = r.Poll(job.ID, nil)
	require.NoError(t, err)
	assert.Empty(t, p.New)
	assert.Equal(t, []string{"one"}, p.Last)
	require.NoError(t, r.Submit(job.ID, ""))
	until(t, r, job.ID, "two")
	p, err = r.Poll(job.ID, &jobs.PollOptions{Lines: -1})
	require.NoError(t, err)
	assert.Equal(t, "two\n", p.New)
	assert.EqualValues(t, 4, p.Offset)
	assert.Empty(t, p.Last)
	require.NoError(t, r.Submit(job.ID, ""))
	end(t, r, job.ID)

	job, _ = run(t, r, jobs.Spec{Command: "seq 1 100"})
	var got string
	for more := int64(1); more > 0; {
		p, err := r.Poll(job.ID, &jobs.PollOptions{Bytes: 100})
		require.NoError(t, err)
		assert.LessOrEqual(t, len(p.New), 100)
		got, more = got+p.New, p.More
	}
	assert.Equal(t, output(t, r, job.ID), got)

	job, _ = run(t, r, jobs.Spec{Command: "seq 1 100000", OutputLimit: 1000})
	p, err = r.Poll(job.ID, nil)
	require.NoError(t, err)
	assert.Equal(t, job.Output.First, p.Dropped)
}
