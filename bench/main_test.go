package main

import (
	"os"
	"testing"

	"github.com/limpet-sh/limpet/internal/testenv"
)

func TestMain(m *testing.M) {
	testenv.Reap()
	os.Exit(m.Run())
}
