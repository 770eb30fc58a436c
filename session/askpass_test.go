package session_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/jobs"
	"github.com/limpet-sh/limpet/session"
	"github.com/limpet-sh/limpet/shell"
)

// A job does not descend from the shell, whose askpass would not answer it: ssh would ask nobody, and not its terminal.
func TestJobsAndTerminalsAskInTheirOwnWay(t *testing.T) {
	testenv.NeedProc(t)
	s := open(t, registry(t, &session.Options{Shell: &shell.Options{
		AskPassword: func(context.Context, command.PasswordQuestion) ([]byte, error) { return []byte("x"), nil },
	}}), "s")
	ctx := testenv.Context(t)
	const print = "env | grep -c ASKPASS"
	res, err := s.Run(ctx, print)
	require.NoError(t, err)
	assert.Equal(t, "3\n", string(res.Stdout.Bytes()))
	job, err := s.StartJob(ctx, jobs.Spec{Command: print + "; true"})
	require.NoError(t, err)
	r, err := s.Jobs()
	require.NoError(t, err)
	_, err = r.Wait(ctx, jobs.WaitOptions{IDs: []string{job.ID}})
	require.NoError(t, err)
	log, err := r.Log(job.ID, jobs.LogOptions{})
	require.NoError(t, err)
	assert.Equal(t, "0\n", log.Text)
}
