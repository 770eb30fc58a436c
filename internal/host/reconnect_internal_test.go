package host

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/internal/connect"
	"github.com/limpet-sh/limpet/internal/wire"
)

// A machine behind a name that leads to several was started at another time, too, and is not told to have been started again.
func TestWhyWhatIsReachedAgainIsAnother(t *testing.T) {
	hello := func(machine, boot, place string) connect.Hello {
		return connect.Hello{Hello: wire.Hello{Machine: machine, Boot: boot}, Place: place}
	}
	for _, row := range []struct {
		name        string
		before, now connect.Hello
		want        string // empty: it is the same
	}{
		{"the same", hello("m", "b", "p"), hello("m", "b", "p"), ""},
		{"the same without an ID", hello("", "b", "p"), hello("", "b", "p"), ""},
		{"the same, which has got an ID", hello("", "b", "p"), hello("m", "b", "p"), ""},
		{"a reboot", hello("m", "b", "p"), hello("m", "c", "q"), "the machine was started again, and what was kept there is gone"},
		{"another machine", hello("m", "b", "p"), hello("n", "c", "q"), "another machine answers there: the name leads to several, or to another one than before"},
		{"another machine of the same directory", hello("m", "boot", "p"), hello("n", "boot", "p"), "another machine answers there: the name leads to several, or to another one than before"},
		{"a reboot, or another machine", hello("", "b", "p"), hello("m", "c", "q"), "the machine was started again, or another one answers there"},
		{"a container that was made anew", hello("", "b", "p"), hello("", "b", "q"), "another machine, or container, answers there"},
		{"a container of an image with an ID", hello("m", "b", "p"), hello("m", "b", "q"), "another machine, or container, answers there"},
	} {
		err := other(row.before, row.now)
		if row.want == "" {
			assert.NoError(t, err, row.name)
		} else {
			assert.EqualError(t, err, row.want, row.name)
		}
	}
}
