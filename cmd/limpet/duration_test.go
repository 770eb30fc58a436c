package main

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestATimeWithoutAUnitIsInSeconds(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"5": 5 * time.Second, "0.5": 500 * time.Millisecond, ".5": 500 * time.Millisecond, "-3": -3 * time.Second, "0": 0, "+7": 7 * time.Second,
		"5s": 5 * time.Second, "2m": 2 * time.Minute, "1h30m": 90 * time.Minute, "500ms": 500 * time.Millisecond, "3600": time.Hour,
	} {
		var d duration
		require.NoError(t, d.Set(text), text)
		assert.Equal(t, want, time.Duration(d), text)
	}
	for _, text := range []string{"", "x", "5x", "5 s", "1d", "1.2.3", ".", "-", "1e3", "inf", "NaN", "0x5", "99999999999999999999", "1,5"} {
		var d duration
		assert.ErrorIs(t, d.Set(text), errDuration, text)
	}
}

// Each flag that shows a TIME takes one: there is one way to write it.
func TestEveryTimeIsWrittenTheSameWay(t *testing.T) {
	count := 0
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Value.Type() == "duration" || strings.Contains(f.Usage, "`TIME`") {
				assert.IsType(t, (*duration)(nil), f.Value, "%s --%s", cmd.CommandPath(), f.Name)
				count++
			}
		})
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(rootCommand(nil))
	assert.Greater(t, count, 10)
}
