package environ_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/command"
	"github.com/limpet-sh/limpet/internal/environ"
)

func TestDefaultHasNeitherSecretsNorCodeNorPrompts(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "s")
	t.Setenv("BASH_ENV", "/tmp/x")
	t.Setenv("EDITOR", "vi")
	t.Setenv("HARMLESS", "1")
	t.Setenv(environ.SessionVar, "outer")
	env := environ.Default()
	assert.Subset(t, env, []string{"EDITOR=false", "VISUAL=false", "GIT_EDITOR=false", "PAGER=cat", "HARMLESS=1"})
	for _, gone := range []string{"OPENAI_API_KEY=s", "BASH_ENV=/tmp/x", "EDITOR=vi", environ.SessionVar + "=outer"} {
		assert.NotContains(t, env, gone)
	}
	assert.Contains(t, environ.Default("OPENAI_*"), "OPENAI_API_KEY=s")
}

func TestCheck(t *testing.T) {
	assert.NoError(t, environ.Check([]string{"A=", "odd.name=x", "BASH_FUNC_f%%=() { :; }"}))
	for _, entry := range []string{"NAME", "=x", "A=secret\x00", ""} {
		err := environ.Check([]string{"A=1", entry})
		var bad *command.EnvError
		assert.ErrorAs(t, err, &bad, "%q", entry)
		assert.NotContains(t, err.Error(), "secret")
	}
}
