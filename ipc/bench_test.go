package ipc_test

import (
	"strings"
	"testing"

	"github.com/limpet-sh/limpet/ipc"
)

func BenchmarkParseRecord(b *testing.B) {
	id := ipc.NewID()
	record := []byte(id + " 0 hBis /home/somebody/project " + id + "\n")
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := ipc.ParseRecord(record, id); !ok {
			b.Fatal("not parsed")
		}
	}
}

func BenchmarkQuote(b *testing.B) {
	script := strings.Repeat("echo 'a b' \"$c\"\n", 64)
	b.SetBytes(int64(len(script)))
	b.ReportAllocs()
	for b.Loop() {
		ipc.Quote(script)
	}
}
