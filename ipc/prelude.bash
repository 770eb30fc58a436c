# shellcheck shell=bash
# The first thing that a persistent bash sources. It makes an interactive bash
# as quiet, and as close to `bash -c`, as it can be made. It runs once, before
# any init file, and defines nothing that a user's command could see.

# History: off, and forget the line that sourced this file.
set +o history +o histexpand
history -c

# No prompt, no mail check, no auto-logout, no history file.
unset -v PS1 PS2 PROMPT_COMMAND MAILCHECK MAIL MAILPATH TMOUT
unset -v HISTFILE HISTSIZE HISTFILESIZE HISTCONTROL HISTTIMEFORMAT

# As in a script: aliases are not expanded unless somebody asks for it.
shopt -u expand_aliases
