package wire_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/testenv"
)

func TestEachCallerBringsItsEnvironment(t *testing.T) {
	served := serve(t, "socket")
	var all sync.WaitGroup
	for _, name := range []string{"a", "b"} {
		s := served.client(t).Session("s")
		all.Go(func() {
			for range 20 {
				res, err := s.Do(testenv.Context(t), command.Request{Script: "echo $WHO ${NOBODY-none}", UpdateEnv: []string{"WHO=" + name, "NOBODY"}})
				assert.NoError(t, err)
				assert.Equal(t, name+" none\n", res.Stdout.String())
			}
		})
	}
	all.Wait()
	for _, env := range []string{"WHO=a", "WHO=b"} {
		status, said := served.raw(t, "POST", commands+"?out=0", `{"id": "`+someID+`", "script": "echo $WHO", "update_env": ["`+env+`"]}`)
		assert.Equal(t, http.StatusOK, status)
		assert.True(t, strings.HasPrefix(said, "1 0 0 2\na\n"), "it is asked for again from elsewhere: %s", said)
	}
	_, err := served.client(t).Session("s").Do(testenv.Context(t), command.Request{Script: "true", UpdateEnv: []string{"a b"}})
	require.ErrorAs(t, err, new(*command.EnvError))
}

func TestAnIDOfItsOwnWantsSomebodyWhoRemembers(t *testing.T) {
	_, err := serve(t, "socket").client(t).Session("s").Do(testenv.Context(t), command.Request{ID: "one", Script: "true"})
	require.EqualError(t, err, "commands cannot have an id of their own here: nothing remembers them")
}
