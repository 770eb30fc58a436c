package remote

import (
	"encoding/json"

	"github.com/limpet-sh/limpet/terminal/keys"
)

const version = 1

// The header fields of answers, and those of trailers.
const (
	headOffset   = "Limpet-Offset"
	headMissed   = "Limpet-Missed"
	headEnd      = "Limpet-End" // of attach: how much was printed before
	headError    = "Limpet-Error"
	headRecorded = "Limpet-Recorded"
)

// Bounds of what is sent. What is to be typed has the largest.
const (
	mostTyped  = 8 << 20
	mostBody   = 64 << 10
	mostOutput = 16 << 20 // of one answer; the rest is asked for by another
	mostAnswer = 64 << 20 // that a client reads as a whole
)

type hello struct {
	Version int    `json:"version"`
	Owner   string `json:"owner"`
	PID     int    `json:"pid"`
}

type written struct {
	Written int `json:"written"`
}

type signalled struct {
	Signal int `json:"signal"`
}

// typed are inputs. A string is what keys.Parse makes of it.
type typed []keys.Input

func (t *typed) UnmarshalJSON(b []byte) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	for _, part := range parts {
		var text string
		if json.Unmarshal(part, &text) == nil {
			parsed, err := keys.Parse(text)
			if err != nil {
				return err
			}
			*t = append(*t, parsed...)
			continue
		}
		var in keys.Input
		if err := json.Unmarshal(part, &in); err != nil {
			return err
		}
		*t = append(*t, in)
	}
	return nil
}
