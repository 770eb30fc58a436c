//go:build linux

package proc

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const rest = " 10 20 30 0 -1 4194304 100 200 0 0 5 6 7 8 20 0 1 0 98765 1000 100 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 9"

func TestParseStatCountsFromTheLastParenthesis(t *testing.T) {
	for _, comm := range []string{"bash", "a b", "a) R 1 2 3 (b", ")", "(", "", "((x))", "a\nb"} {
		st, err := parseStat([]byte("42 (" + comm + ") S" + rest + "\n"))
		require.NoError(t, err, comm)
		assert.Equal(t, Stat{PID: 42, PPID: 10, PGRP: 20, SID: 30, State: 'S', Execed: true, Threads: 1, Start: 98765,
			User: 50 * time.Millisecond, System: 60 * time.Millisecond,
			ChildUser: 70 * time.Millisecond, ChildSystem: 80 * time.Millisecond, ChildFaults: 200, image: image{at: [4]uint64{1}, execed: true}}, st, comm)
	}
	st, err := parseStat([]byte("42 (x) Z" + rest))
	require.NoError(t, err)
	assert.True(t, st.Zombie())
	assert.EqualValues(t, 9, st.Ended)
	assert.False(t, st.Exiting)
	st, err = parseStat([]byte("42 (x) R" + strings.Replace(rest, "4194304", "4194308", 1)))
	require.NoError(t, err)
	assert.True(t, st.Exiting)
	st, err = parseStat([]byte("42 (x) R" + strings.Replace(strings.Replace(rest, "4194304", "4194308", 1), "20 0 1 0", "20 0 2 0", 1)))
	require.NoError(t, err)
	assert.False(t, st.Exiting, "another thread goes on")
}

func TestParseStatRefusesWhatIsNoStatLine(t *testing.T) {
	for _, text := range []string{"", "42", "42 (x", "42 (x)", "42 (x) S 1 2", "42 (x) S 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 x"} {
		_, err := parseStat([]byte(text))
		assert.ErrorContains(t, err, "proc: ", "%q", text)
	}
}
