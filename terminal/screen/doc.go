// Package screen tells what a person would see on a terminal now.
//
// An [Emulator] is written what a program prints, and has the picture: a [Screen] is a
// value that can be read as text and painted on a real terminal; package picture saves it as SVG or PNG.
// A [Scanner] is far cheaper than an Emulator. It only follows the [Modes] that a program
// sets and finds each [Query] that expects an answer, and a [QueryFilter] takes those
// queries out of a stream.
//
// The terminal that is emulated is the one that TERM=xterm-256color describes: what vim,
// less, top, tmux and line editors print. Text is UTF-8, so the bytes from 0x80 on are
// never C1 controls.
//
// A program is not trusted. Every byte costs bounded time: the most expensive sequence
// is as dear as painting the screen once, whatever its numbers say. Memory is bounded by
// the size of the screen and the [Options]. No answer ever has text that
// the program chose, for it would be typed into whatever reads next.
//
// # What is not emulated
//
// Left and right margins, double-width lines, changed palettes, images, reverse wraparound,
// 132 columns by DECCOLM, and soft fonts. A screen that becomes narrower cuts its lines
// and does not wrap them again. Emoji with a variation selector are as wide as
// their first rune is; those joined by ZWJ, or with a skin tone, are one cell of two
// columns, as in tmux.
package screen
