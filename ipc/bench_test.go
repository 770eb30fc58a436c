package ipc

import (
	"testing"

	"github.com/limpet-sh/limpet/internal/environ"
)

func BenchmarkParseRecord(b *testing.B) {
	id := environ.NewID()
	record := []byte(id + " 0 hBis /home/somebody/project " + id + "\n")
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := ParseRecord(record, id); !ok {
			b.Fatal("not parsed")
		}
	}
}
