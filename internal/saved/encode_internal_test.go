package saved

import (
	"bytes"
	"crypto/sha256"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// full is a state all of whose fields have a value.
func full() State {
	s := State{
		Dir: "/a b\n", ExitTrap: true, IntTrap: true, Readonly: []string{"R", ""}, LogoutAfter: time.Hour, Unsaved: []string{"u"},
		LeftOut: []string{"set -e"}, Nameless: []string{"a.b=c"}, Begin: []string{"errexit"}, Open: 7, InFunction: true,
		Given: Given{Env: []string{"E=born"}, updates: map[string]string{"DISPLAY": "DISPLAY=:1", "SSH_TTY": "SSH_TTY"}},
	}
	for i := range s.part {
		s.part[i] = []byte{byte(i), 0, 0xff, '\n'}
	}
	return s
}

func TestAStateSurvivesAsBytes(t *testing.T) {
	s := full()
	for i, v := 0, reflect.ValueOf(s); i < v.NumField(); i++ {
		require.False(t, v.Field(i).IsZero(), "%s: give it a value here, and pass it on in State.fields", v.Type().Field(i).Name)
	}
	got, err := Decode(s.Encode())
	require.NoError(t, err)
	assert.Equal(t, s, got)
	got, err = Decode(State{}.Encode())
	require.NoError(t, err)
	assert.Empty(t, got.Readonly)
	assert.Zero(t, got.Size())
}

func TestADamagedStateIsRefused(t *testing.T) {
	good := full().Encode()
	for i := range good {
		_, err := Decode(good[:i])
		require.ErrorIs(t, err, ErrEncoding, "the first %d bytes", i)
		for bit := range 8 {
			bad := bytes.Clone(good)
			bad[i] ^= 1 << bit
			_, err := Decode(bad)
			require.ErrorIs(t, err, ErrEncoding, "bit %d of byte %d", bit, i)
		}
	}
	_, err := Decode(append(bytes.Clone(good), 0))
	require.ErrorIs(t, err, ErrEncoding)
}

// FuzzDecode has a checksum that is right, so that the fields are read.
func FuzzDecode(f *testing.F) {
	good := full().Encode()
	f.Add(good[len(encoding) : len(good)-sha256.Size])
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, fields []byte) {
		b := append([]byte(encoding), fields...)
		sum := sha256.Sum256(b)
		s, err := Decode(append(b, sum[:]...))
		if err != nil {
			require.ErrorIs(t, err, ErrEncoding)
			return
		}
		again, err := Decode(s.Encode())
		require.NoError(t, err)
		assert.Equal(t, s.Encode(), again.Encode())
	})
}
