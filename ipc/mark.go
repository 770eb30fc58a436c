package ipc

import "github.com/limpet-sh/limpet/internal/environ"

// Variables in the environment of what limpet starts. They are how a process
// is found that left its parents (setsid, a double fork): children inherit
// them. Their values are unguessable and open nothing.
const (
	SessionVar = environ.SessionVar // one value per shell or runner
	CommandVar = environ.CommandVar // one value per one-shot command
)
