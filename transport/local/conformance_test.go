package local_test

import (
	"os"
	"testing"

	"github.com/limpet-sh/limpet/internal/testenv"
	"github.com/limpet-sh/limpet/transport"
	"github.com/limpet-sh/limpet/transport/local"
	"github.com/limpet-sh/limpet/transport/transporttest"
)

func TestMain(m *testing.M) { os.Exit(testenv.Main(m)) }

func here(*testing.T) transport.Transport { return local.Transport{} }

func TestConformance(t *testing.T) { transporttest.Run(t, here) }

func TestWorksByPolling(t *testing.T) {
	testenv.Slow(t)
	transporttest.RunPolled(t, here)
}
