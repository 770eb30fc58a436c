package ipc

// Variables in the environment of what limpet starts. They are how a process
// is found that left its parents (setsid, a double fork): children inherit
// them. Their values are unguessable and open nothing.
const (
	SessionVar = "LIMPET_SESSION" // one value per shell or runner
	CommandVar = "LIMPET_COMMAND" // one value per one-shot command
)
