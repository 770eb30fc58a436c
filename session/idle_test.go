package session_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/terminal"
)

const soon = 50 * time.Millisecond

func isGone(r *session.Registry, name string) func() bool {
	return func() bool {
		for _, info := range r.List() {
			if info.Name == name {
				return false
			}
		}
		return true
	}
}

func TestAnIdleSessionIsClosedAndTheNextOfItsNameIsTold(t *testing.T) {
	r := registry(t, &session.Options{IdleTimeout: soon})
	run(t, open(t, r, "s"), "x=1")
	testenv.Await(t, "the session to be closed", isGone(r, "s"))
	s := open(t, r, "s")
	assert.Equal(t, "gone", says(t, s, "echo ${x-gone}"))
	told := s.Notices()
	require.Len(t, told, 1)
	assert.Contains(t, told[0], "had not been used for 50ms")
	assert.Empty(t, s.Notices())
}

func TestASessionInWhichSomethingRunsIsNotIdle(t *testing.T) {
	testenv.Slow(t)
	for name, begin := range map[string]func(t *testing.T, r *session.Registry, s *session.Session) (end func()){
		"job": func(t *testing.T, r *session.Registry, s *session.Session) func() {
			job, err := s.StartJob(testenv.Context(t), jobs.Spec{Command: "sleep 1000"})
			require.NoError(t, err)
			return func() {
				_, err := theJobs(t, r).Stop(testenv.Context(t), job.ID)
				require.NoError(t, err)
			}
		},
		"terminal": func(t *testing.T, _ *session.Registry, s *session.Session) func() {
			term, err := s.StartTerminal(testenv.Context(t), terminal.Spec{Argv: []string{"sleep", "1000"}})
			require.NoError(t, err)
			return func() { require.NoError(t, term.Close()) }
		},
		"background process": func(t *testing.T, _ *session.Registry, s *session.Session) func() {
			testenv.NeedProc(t)
			pid := says(t, s, "sleep 1000 & echo $!")
			return func() { run(t, s, "kill "+pid) }
		},
		"command": func(t *testing.T, _ *session.Registry, s *session.Session) func() {
			done := make(chan error, 1)
			go func() {
				_, err := s.Run(testenv.Context(t), "sleep 1000")
				done <- err
			}()
			testenv.Await(t, "the command", func() bool { return info(t, s).Running != "" })
			return func() {
				_, err := s.Interrupt(testenv.Context(t))
				require.NoError(t, err)
				require.Error(t, <-done)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := registry(t, &session.Options{IdleTimeout: soon})
			s := open(t, r, "s")
			end := begin(t, r, s)
			open(t, r, "idle")
			for range 3 { // One that is idle goes, and this one stays.
				testenv.Await(t, "the idle one to be closed", isGone(r, "idle"))
				open(t, r, "idle")
			}
			require.False(t, isGone(r, "s")())
			end()
			testenv.Await(t, "the session to be closed", isGone(r, "s"))
		})
	}
}

func TestWhatWasToBeToldOfAnIdleSessionIsToldToTheNextOfItsName(t *testing.T) {
	r := registry(t, &session.Options{IdleTimeout: soon})
	s := open(t, r, "s")
	job, err := s.StartJob(testenv.Context(t), jobs.Spec{Command: "exit 3", Notify: true})
	require.NoError(t, err)
	testenv.Await(t, "the session to be closed", isGone(r, "s"))
	told := strings.Join(open(t, r, "s").Notices(), "\n")
	assert.Contains(t, told, job.ID)
	assert.Contains(t, told, "exit 3")
	assert.Contains(t, told, "is a new one")
	assert.Empty(t, s.Notices(), "the old one takes nothing any more")
}
