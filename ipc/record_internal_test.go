package ipc

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestParseInner(t *testing.T) {
	for _, test := range []struct {
		text     string
		status   int
		pipeline []int
		ok       bool
	}{
		{"<i><d><1><0><1><i><d>", 1, []int{0, 1}, true},
		{"<i><d><0><0><i><d>stale><i><d>", 0, []int{0}, true},
		{"<i><d><1><i><d>", 0, nil, false},
		{"<i><d><1><x><i><d>", 0, nil, false},
		{"<i><d><1><256><i><d>", 0, nil, false},
		{"<i><d><1><0><x><y>", 0, nil, false},
		{"<x><y><1><0><i><d>", 0, nil, false},
		{"", 0, nil, false},
	} {
		status, pipeline, ok := parseInner([]byte(test.text), "id")
		assert.Equal(t, test.ok, ok, test.text)
		if test.ok {
			assert.Equal(t, test.status, status, test.text)
			assert.Equal(t, test.pipeline, pipeline, test.text)
		}
	}
}
