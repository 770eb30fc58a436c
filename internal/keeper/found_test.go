package keeper_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/limpet-sh/limpet/internal/testenv"
)

// Who finds a record without a socket takes the session for one that ends, and waits for that.
func TestASessionIsNotFoundBeforeItCanBeReached(t *testing.T) {
	dir := testenv.TempDir(t)
	r := registry(t, dir)
	over, looked := make(chan struct{}), make(chan []string)
	go func() {
		var early []string
		defer func() { looked <- early }()
		for {
			select {
			case <-over:
				return
			default:
			}
			records, _ := filepath.Glob(filepath.Join(r.Dir(), "*", "record.json")) // The pattern is right.
			for _, record := range records {
				if _, err := os.Lstat(filepath.Join(filepath.Dir(record), "s")); err != nil {
					early = append(early, record)
				}
			}
		}
	}()
	for n := range 10 {
		kept(t, r, fmt.Sprintf("s%d", n), nil)
	}
	close(over)
	assert.Empty(t, <-looked)
}
