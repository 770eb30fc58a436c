package host

import (
	"errors"

	"github.com/limpet-sh/limpet/internal/connect"
	"github.com/limpet-sh/limpet/internal/questions"
)

// ErrNoQuestions means that the limpet over there is too old to show questions.
var ErrNoQuestions = errors.New("no questions can be answered")

// Questions are those that sessions of the machine ask. They can be used until Disconnect.
func (h *Host) Questions() (questions.Desk, error) {
	if err := h.can(connect.CanQuestions, "answer questions of", ErrNoQuestions); err != nil {
		return nil, err
	}
	return questions.Remote{Asks: h.asks}, nil
}
