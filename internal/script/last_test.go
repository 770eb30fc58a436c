package script_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/internal/script"
)

func TestEndsWithChild(t *testing.T) {
	lib := script.NewLibrary(map[string]string{"leave": "leave () \n{ \n    exit 3\n}", "cd": "cd () \n{ \n    command cd x\n}"}).
		WithAliases(map[string]string{"ll": "ls -l"})
	for text, want := range map[string]bool{
		"make":                            true,
		"make -j4 all 2>&1":               true,
		"CC=gcc make":                     true,
		"make | tee log":                  true,
		"pushd x && make":                 true,
		"x=1; export y=2; [[ $x ]]; make": true,
		"echo a\necho b\ntimeout 5 make":  true,
		"test -d x && test -f y && make":  true,
		"! make":                          true,

		"":                            false,
		"if":                          false,
		"make; echo":                  false,
		"make && make check":          false,
		"make || true":                false,
		"make &":                      false,
		"(make)":                      false,
		"{ make; }":                   false,
		"cd x && make":                false, // It is a function here.
		"leave":                       false,
		"ll":                          false,
		"eval make":                   false,
		". ./f":                       false,
		"source f":                    false,
		"command make":                false,
		"$make":                       false,
		"make $(cat targets)":         false,
		"diff <(a) <(b)":              false,
		"x=$(a)":                      false,
		"x=$(a); make":                false,
		"make >$(mktemp)":             false,
		"sleep 5 & make":              false,
		"for i in 1 2; do make; done": false,
		"make | leave":                false,
		"leave | cat":                 false,
		"wait; make":                  false,
		"read x; make":                false,
	} {
		assert.Equal(t, want, script.Read(text).EndsWithChild(lib), text)
	}
	assert.True(t, script.Read("cd x && make").EndsWithChild(nil))
}
