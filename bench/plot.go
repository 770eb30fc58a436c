package main

import (
	"cmp"
	"errors"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// plotted are the workloads that the plot shows, and what it calls them.
var plotted = []struct{ workload, title string }{
	{"`true`", "true, a builtin"},
	{"`/bin/true`", "/bin/true, a program"},
	{"start", "start of a shell"},
}

// The colours tell limpet, the floor and the rest apart, also in grey.
var (
	limpetColour = color.RGBA{0x1b, 0x7f, 0x79, 0xff}
	floorColour  = color.RGBA{0xd9, 0xa4, 0x41, 0xff}
	otherColour  = color.RGBA{0xa9, 0xb0, 0xb7, 0xff}
	inkColour    = color.RGBA{0x22, 0x26, 0x2a, 0xff}
	gridColour   = color.RGBA{0xe6, 0xe8, 0xea, 0xff}
)

// entry is a line of the plot: a bar, or a heading if it has no time.
type entry struct {
	label string
	took  time.Duration
}

// plotEntries lists the lines from top to bottom.
func (r *report) plotEntries() (entries []entry) {
	for _, p := range plotted {
		var group []entry
		for _, s := range r.Series {
			if s.Workload == p.workload {
				group = append(group, entry{s.Side, median(s.Samples)})
			}
		}
		slices.SortFunc(group, func(a, b entry) int { return cmp.Compare(a.took, b.took) })
		if len(group) > 0 {
			entries = append(append(entries, entry{label: p.title}), group...)
		}
	}
	return entries
}

// bold is WeightBold of golang.org/x/image/font.
const bold = 3

// Sizes of the plot.
const (
	margin     = 0.35 * vg.Centimeter
	plotWidth  = 22 * vg.Centimeter
	lineHeight = 0.62 * vg.Centimeter
	barHeight  = 0.40 * vg.Centimeter
)

// plot writes the medians as horizontal bars, to each of the files; their
// names' ends say in which format. It writes nothing when there are none.
func (r *report) plot(files ...string) error {
	entries := r.plotEntries()
	if len(entries) == 0 {
		return nil
	}
	p := plot.New()
	p.Title.Text = "Time of one command, median (log scale; shorter is better)"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, decades{}
	p.Y.Min, p.Y.Max = -0.5, float64(len(entries))-0.5
	p.X.Min, p.X.Max = span(entries)
	p.X.Padding, p.Y.Padding = 0, 0
	sans := func(style *text.Style, size vg.Length) {
		style.Font = font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size)
		style.Color = inkColour
	}
	sans(&p.Title.TextStyle, 13)
	sans(&p.X.Tick.Label, 10)
	sans(&p.Y.Tick.Label, 10.5)
	p.Title.TextStyle.Font.Weight, p.Title.Padding = bold, 8
	p.X.LineStyle.Width, p.Y.LineStyle.Width = 0, 0
	p.X.Tick.LineStyle.Width, p.Y.Tick.LineStyle.Width = 0, 0
	p.Y.Tick.Label.XAlign = draw.XRight
	var ticks plot.ConstantTicks
	for i, e := range entries {
		label := e.label
		if e.took == 0 {
			label = ""
		}
		ticks = append(ticks, plot.Tick{Value: float64(len(entries) - 1 - i), Label: label})
	}
	p.Y.Tick.Marker = ticks
	p.Add(&bars{entries, p.Y.Tick.Label})
	for _, file := range files {
		if err := save(p, vg.Length(len(entries)+3)*lineHeight, file); err != nil {
			return fmt.Errorf("drawing %q: %w", file, err)
		}
	}
	return nil
}

// save draws the plot with a margin, which Plot.Save has none of, and on white,
// because an SVG may be shown on any ground.
func save(p *plot.Plot, height vg.Length, file string) error {
	canvas, err := draw.NewFormattedCanvas(plotWidth, height, strings.TrimPrefix(filepath.Ext(file), "."))
	if err != nil {
		return err
	}
	page := draw.New(canvas)
	page.FillPolygon(color.White, []vg.Point{
		{}, {X: plotWidth}, {X: plotWidth, Y: height}, {Y: height},
	})
	p.Draw(draw.Crop(page, margin, -margin, margin, -margin))
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = canvas.WriteTo(f)
	return errors.Join(err, f.Close())
}

// span is the range of the axis: whole decades below, room for a label above.
func span(entries []entry) (low, high float64) {
	low, high = math.Inf(1), 0
	for _, e := range entries {
		if e.took > 0 {
			low, high = min(low, float64(e.took)), max(high, float64(e.took))
		}
	}
	return math.Pow(10, math.Floor(math.Log10(low))), high * 3
}

// decades marks 1, 10 and 100 µs, ms and s.
type decades struct{}

func (decades) Ticks(low, high float64) (ticks []plot.Tick) {
	for at := low; at <= high; at *= 10 {
		ticks = append(ticks, plot.Tick{Value: at, Label: unit(time.Duration(math.Round(at)))})
	}
	return ticks
}

// unit prints a round duration.
func unit(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return fmt.Sprintf("%d µs", d.Microseconds())
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	return fmt.Sprintf("%.0f s", d.Seconds())
}

// bars draws the lines.
type bars struct {
	entries []entry
	style   text.Style
}

func (b *bars) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, tick := range p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max) {
		c.StrokeLine2(draw.LineStyle{Color: gridColour, Width: 0.7}, x(tick.Value), c.Min.Y, x(tick.Value), c.Max.Y)
	}
	for i, e := range b.entries {
		at := y(float64(len(b.entries) - 1 - i))
		style := b.style
		style.XAlign, style.YAlign = draw.XLeft, -0.38
		if e.took == 0 {
			style.Font.Weight = bold
			c.FillText(style, vg.Point{X: c.Min.X, Y: at}, e.label)
			continue
		}
		end := x(float64(e.took))
		c.FillPolygon(colourOf(e.label), []vg.Point{
			{X: c.Min.X, Y: at - barHeight/2}, {X: end, Y: at - barHeight/2},
			{X: end, Y: at + barHeight/2}, {X: c.Min.X, Y: at + barHeight/2},
		})
		c.FillText(style, vg.Point{X: end + 4, Y: at}, show(e.took))
	}
}

func colourOf(side string) color.Color {
	switch side {
	case limpetName, "limpet, 2nd session":
		return limpetColour
	case bareName:
		return floorColour
	}
	return otherColour
}
