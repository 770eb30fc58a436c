package lazyregexp_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/internal/lazyregexp"
)

func TestAnExpressionIsCompiledOnceAndWhenItIsUsed(t *testing.T) {
	digits := lazyregexp.New(`^\d+$`)
	assert.True(t, digits().MatchString("12"))
	assert.Same(t, digits(), digits())
	assert.Zero(t, testing.AllocsPerRun(10, func() { digits() }))

	wrong := lazyregexp.New("(")
	assert.PanicsWithValue(t, "regexp: Compile(`(`): error parsing regexp: missing closing ): `(`", func() { wrong() })
}
