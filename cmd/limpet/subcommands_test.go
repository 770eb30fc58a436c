package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestASubcommandByItselfIsTheSameAsBesideTheOthers(t *testing.T) {
	all := rootCommand(nil)
	require.Len(t, all.Commands(), len(subcommands()))
	for _, sub := range subcommands() {
		alone := rootCommand([]string{sub.name, "--help"}).Commands()
		require.Len(t, alone, 1, sub.name)
		assert.Equal(t, sub.name, alone[0].Name())
		beside, _, err := all.Find([]string{sub.name})
		require.NoError(t, err)
		assert.Equal(t, beside.UsageString(), alone[0].UsageString())
	}
	for _, args := range [][]string{{"job", "list"}, {"help", "run"}, {"--version"}, {"runn"}} {
		assert.Len(t, rootCommand(args).Commands(), len(subcommands()), "%s", args)
	}
}
