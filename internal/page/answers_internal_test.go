package page

import (
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/internal/questions"
)

// asking stands in for the sessions of a machine in which every question is asked that somebody wants to answer.
type asking struct{ Sessions }

func (asking) Questions(context.Context) ([]questions.Open, error) { return nil, nil }

func (asking) Question(_ context.Context, id string) (questions.Open, error) {
	return questions.Open{ID: id}, nil
}

func (asking) Sheet(q questions.Open) Sheet {
	return Sheet{Brief: q.ID, Choices: []Choice{{Answer: Once}}}
}

func (asking) Answer(context.Context, questions.Open, Answer) (string, error) { return "yes", nil }

// The answers do not come as requests: for each of those all processes of the machine are looked at.
func TestTheLogOfAnswersIsBounded(t *testing.T) {
	h, err := New(asking{}, "ABCDEFGHIJKLMNOPQRSTUVWXYZ", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, nil)
	require.NoError(t, err)
	defer h.Close()
	for i := range mostLogged + 5 {
		id := fmt.Sprint("q", i)
		q, s, err := h.question(t.Context(), id)
		require.NoError(t, err)
		_, err = h.answer(id, Answer{Digest: digestOf(q, s), Answer: Once})
		require.NoError(t, err)
	}
	all, err := h.listQuestions(t.Context())
	require.NoError(t, err)
	log := all.(questionsJSON).Log
	require.Len(t, log, 200)
	assert.Equal(t, "q5", log[0].Brief, "the oldest are forgotten")
	assert.Equal(t, "q204", log[199].Brief)
}
