package script

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// optionLetters are those of the options that [Traits.Options] is about, to set.
const optionLetters = "enprtuvx"

// optionNamed reports whether [Traits.Options] is about the option of this name.
func optionNamed(name string) bool {
	switch name {
	case "errexit", "nounset", "noexec", "verbose", "xtrace", "pipefail", "posix", "onecmd", "privileged", "restricted":
		return true
	}
	return false
}

// mode is for an option that is switched on; ok says that its name is known.
func (w *walker) mode(name string, ok bool) {
	if !ok || name == "posix" || name == "noexec" {
		w.traits.Modal = true
	}
	if !ok || name == "verbose" {
		w.mark(&w.traits.Verbose)
	}
}

// set is for the words behind "set".
func (w *walker) set(words []*syntax.Word) {
	w.changes()
	for i := 0; i < len(words); i++ {
		text, ok := constant(words[i])
		if !ok {
			if mayBeOption(words[i]) {
				w.mark(&w.traits.Options)
				w.mode("", false)
			}
			return
		}
		if len(text) < 2 || text == "--" || text[0] != '-' && text[0] != '+' {
			return
		}
		on := text[0] == '-'
		for _, letter := range []byte(text[1:]) {
			if letter != 'o' {
				if on && strings.IndexByte(optionLetters, letter) >= 0 {
					w.mark(&w.traits.Options)
				}
				if on && letter == 'n' {
					w.traits.Modal = true
				}
				if on && letter == 'v' {
					w.mark(&w.traits.Verbose)
				}
				continue
			}
			if i+1 == len(words) {
				continue // It lists the options.
			}
			name, ok := constant(words[i+1])
			if ok && (strings.HasPrefix(name, "-") || strings.HasPrefix(name, "+")) {
				continue // It lists the options too.
			}
			if on && (!ok || optionNamed(name)) {
				w.mark(&w.traits.Options)
			}
			if on {
				w.mode(name, ok)
			}
			i++
		}
	}
}

// shopt is for the words behind "shopt".
func (w *walker) shopt(words []*syntax.Word) {
	w.changes()
	w.mark(&w.traits.Shopt)
	options, rest, certain := parseOptions(words, "")
	set, ofSet := !certain, !certain
	for _, option := range options {
		set = set || option.letter == 's'
		ofSet = ofSet || option.letter == 'o'
	}
	for _, word := range rest {
		name, ok := constant(word)
		if set && ofSet && (!ok || optionNamed(name)) {
			w.mark(&w.traits.Options)
		}
		if set && ofSet {
			w.mode(name, ok)
		}
		if !ok || name == "expand_aliases" {
			w.mark(&w.traits.Aliases)
		}
		if !ok || name == "failglob" {
			w.mark(&w.traits.Failglob)
		}
		if !ok || name == "lastpipe" {
			w.mark(&w.traits.Lastpipe)
		}
	}
}
