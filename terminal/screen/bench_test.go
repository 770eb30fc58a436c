package screen_test

import (
	"bytes"
	"io"
	"os"
	"runtime"
	"testing"

	"github.com/limpet-sh/limpet/terminal/picture"
	"github.com/limpet-sh/limpet/terminal/screen"
)

var text = bytes.Repeat([]byte("the quick brown fox jumps over the lazy dog, and then it does so again\r\n"), 1000)

func capture(b *testing.B, name string) []byte {
	in, err := os.ReadFile("testdata/captures/" + name)
	if err != nil {
		b.Fatal(err)
	}
	return in
}

func benchmarkEmulator(b *testing.B, in []byte, size screen.Size) {
	e := screen.New(size, nil)
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = e.Write(in)
	}
}

func BenchmarkEmulatorText(b *testing.B) { benchmarkEmulator(b, text, screen.Size{Cols: 80, Rows: 24}) }

func BenchmarkEmulatorTextLarge(b *testing.B) {
	benchmarkEmulator(b, text, screen.Size{Cols: 500, Rows: 1000})
}

func BenchmarkEmulatorUnicode(b *testing.B) {
	benchmarkEmulator(b, bytes.Repeat([]byte("世界 żółć e\u0301 😀 ┌──┐\r\n"), 1000), screen.Size{Cols: 80, Rows: 24})
}

func BenchmarkEmulatorVim(b *testing.B) {
	benchmarkEmulator(b, capture(b, "vim.raw"), screen.Size{Cols: 80, Rows: 24})
}

func BenchmarkEmulatorTop(b *testing.B) {
	benchmarkEmulator(b, capture(b, "top.raw"), screen.Size{Cols: 80, Rows: 24})
}

func benchmarkScanner(b *testing.B, in []byte) {
	var s screen.Scanner
	b.SetBytes(int64(len(in)))
	b.ReportAllocs()
	for b.Loop() {
		s.Scan(in, nil)
	}
}

func BenchmarkScannerText(b *testing.B) { benchmarkScanner(b, text) }
func BenchmarkScannerVim(b *testing.B)  { benchmarkScanner(b, capture(b, "vim.raw")) }
func BenchmarkScannerImage(b *testing.B) {
	benchmarkScanner(b, append(append([]byte("\x1bPq"), bytes.Repeat([]byte("#0;2;0;0;0~~@@"), 5000)...), "\x1b\\"...))
}

func BenchmarkFilterText(b *testing.B) { benchmarkFilter(b, text) }
func BenchmarkFilterVim(b *testing.B)  { benchmarkFilter(b, capture(b, "vim.raw")) }

func benchmarkFilter(b *testing.B, in []byte) {
	var f screen.QueryFilter
	var out []byte
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		out = f.Filter(out[:0], in)
	}
}

func vim(b *testing.B) *screen.Screen {
	e := screen.New(screen.Size{Cols: 80, Rows: 24}, nil)
	_, _ = e.Write(capture(b, "vim.raw"))
	return e.Screen()
}

func BenchmarkScreen(b *testing.B) {
	e := screen.New(screen.Size{Cols: 80, Rows: 24}, nil)
	_, _ = e.Write(capture(b, "vim.raw"))
	b.ReportAllocs()
	for b.Loop() {
		e.Screen()
	}
}

func BenchmarkANSI(b *testing.B) {
	s := vim(b)
	for b.Loop() {
		s.ANSI()
	}
}

func BenchmarkSVG(b *testing.B) {
	s := vim(b)
	for b.Loop() {
		_ = picture.SVG(io.Discard, s)
	}
}

func BenchmarkPNG(b *testing.B) {
	s := vim(b)
	for b.Loop() {
		_ = picture.PNG(io.Discard, s)
	}
}

// BenchmarkMemory reports what an emulator keeps: fresh, with a full screen, and with the
// alternate one and 1000 lines of scrollback too.
func BenchmarkMemory(b *testing.B) {
	top := capture(b, "top.raw")
	for name, in := range map[string][]byte{
		"fresh": nil, "full": bytes.Repeat([]byte("x"), 80*24), "all": bytes.Join([][]byte{text, []byte("\x1b[?1049h"), top}, nil),
	} {
		b.Run(name, func(b *testing.B) {
			var list []*screen.Emulator
			before := heap()
			for b.Loop() {
				e := screen.New(screen.Size{Cols: 80, Rows: 24}, nil)
				_, _ = e.Write(in)
				list = append(list, e)
			}
			b.ReportMetric(float64(heap()-before)/float64(len(list)), "bytes/emulator")
			runtime.KeepAlive(list)
		})
	}
}
