package command

// PasswordQuestion is what a program that runs in a shell asks a person, by SUDO_ASKPASS or SSH_ASKPASS. All texts in it are the
// programs' own and may hold anything: whoever shows them escapes what is not printable, and says whose words they are.
//
// Whatever runs in a shell can ask in this way, and can lie about why: the question tells which processes ask, and proves nothing. An
// answer is known to everything that the asking program gives it to.
type PasswordQuestion struct {
	// Kind says what is wanted for an answer. The zero value is a password.
	Kind PasswordKind

	// Prompt is the text that the program asks with, as "[sudo] password for alice: ". It may be empty.
	Prompt string

	// Program is the name of the program that asks, if that is sudo, or a program of ssh or git that belongs to root: sudo, ssh,
	// ssh-add, git-remote-http, for example. It is empty for every other program.
	Program string

	// Chain is the process that asks, its parent, and so on up to the first process of the shell. It has at least one element.
	Chain []AskingProcess

	// Again reports whether the same process has asked the same before and was answered: the answer was probably wrong.
	Again bool
}

// AskingProcess is one process of those that led to a question.
type AskingProcess struct {
	PID     int
	Command string // its arguments, joined by blanks and cut at 200 bytes; its name if it has none
}

// PasswordKind says what a program wants for an answer.
type PasswordKind int

// The kinds of questions.
const (
	// AskPassword wants a password or another secret, which must not be shown while it is typed.
	AskPassword PasswordKind = iota

	// AskName wants a text that is no secret, as the user name that git asks for.
	AskName

	// AskConfirm wants a yes or a no, as the question about the key of an unknown host. Any answer without an error is a yes.
	AskConfirm

	// AskNothing wants no answer, but tells something, as that a security key waits to be touched.
	AskNothing
)
