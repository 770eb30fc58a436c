# shellcheck shell=bash
# What the trials share. Each line that is printed is what was tried, and what it gave.

bad=0

# verdict ends a trial.
verdict() { exit "$bad"; }

# is WHAT PATTERN GOT: whether what came matches a pattern of bash.
is() {
	local got=${3//$'\n'/; }
	# shellcheck disable=SC2053 # It is a pattern.
	if [[ $3 == $2 ]]; then
		printf 'ok    %s: %.110s\n' "$1" "$got"
	else
		printf 'FAIL  %s: %.400s, where %s was to come\n' "$1" "$got" "$2"
		bad=1
	fi
}

# between WHAT LEAST MOST GOT: whether a number is between two.
between() {
	if (($4 >= $2 && $4 <= $3)); then
		printf 'ok    %s: %s\n' "$1" "$4"
	else
		printf 'FAIL  %s: %s, where %s to %s was to come\n' "$1" "$4" "$2" "$3"
		bad=1
	fi
}

# now prints the seconds since the machine was started, which no change of the clock changes, and a part of a second.
now() {
	local up
	read -r up _ </proc/uptime
	echo "$up"
}

# since NOW: the milliseconds since then.
since() { awk -v from="$1" -v to="$(now)" 'BEGIN { printf "%d\n", (to - from) * 1000 }'; }
