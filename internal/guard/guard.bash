# shellcheck shell=bash
# The guard of a limpet program. It reads what it has to guard from its stdin, a
# pipe that only the program holds open:
#
#	+ENTRY	processes that have ENTRY in their environment belong to a session
#	-ENTRY	that session was closed in good order
#	dDIR	a directory of the program
#	pPID START	a process besides, by its start time
#	PPID START	that has ended
#	sPID START	a leader of a session, which is to end with it
#	SPID START	that has ended
#	q	nothing is left to guard
#
# The end of the pipe means that the program is gone, however it went. Then
# the guard ends what carries an entry, and removes the directories.

trap '' HUP INT TERM

entries=()
dirs=()
declare -A held=()
declare -A leaders=()
while IFS= read -r line; do
	case $line in
	+*) entries+=("${line#+}") ;;
	-*)
		for i in "${!entries[@]}"; do
			[[ ${entries[i]} == "${line#-}" ]] && unset 'entries[i]'
		done
		;;
	d*) dirs+=("${line#d}") ;;
	p*) held[${line#p}]=1 ;;
	P*) unset "held[${line#P}]" ;;
	s*) leaders[${line#s}]=1 ;;
	S*) unset "leaders[${line#S}]" ;;
	q) exit 0 ;;
	esac
done

# carries PID: whether the process has one of the entries. It is asked right
# before each signal: the entry is the process' identity, a pid is not.
carries() {
	local item entry before=
	while IFS= read -r -d '' item; do
		for entry in "${entries[@]}"; do
			# A bash that starts has a NUL in the place of the "=" for a moment.
			[[ $item == "$entry" || $before=$item == "$entry" ]] && return 0
		done
		before=$item
	done <"/proc/$1/environ"
	return 1
}

# sweep SIGNAL: signals all that carry an entry; false when there are none.
sweep() {
	local dir pid found=1
	for dir in /proc/[0-9]*; do
		pid=${dir#/proc/}
		if [[ $pid != "$$" ]] && carries "$pid"; then
			kill -s "$1" "$pid"
			found=0
		fi
	done
	return $found
}

# endsession PID START: kills what is of the session. Nobody else has the pid of a leader
# that has ended, as long as something is.
endsession() {
	local dir stat fields
	if stat=$(<"/proc/$1/stat"); then
		read -ra fields <<<"${stat##*) }"
		[[ ${fields[19]} == "$2" ]] || return
	fi
	for dir in /proc/[0-9]*; do
		stat=$(<"$dir/stat") || continue
		read -ra fields <<<"${stat##*) }"
		[[ ${fields[3]} == "$1" ]] && kill -s KILL "${dir#/proc/}"
	done
}

# First: what is below these must not be asked to end in good order.
for one in "${!held[@]}"; do
	read -r pid start <<<"$one"
	# The program's name is in parentheses, and may hold anything.
	stat=$(<"/proc/$pid/stat") && read -ra fields <<<"${stat##*) }" && [[ ${fields[19]} == "$start" ]] && kill -s KILL "$pid"
done

if ((${#entries[@]})); then
	# A moment to end in good order, then no more questions. Who forks while
	# the list is read is found in a later round, as is who was just becoming
	# another program: its environment is empty then.
	sweep TERM && read -r -t 0.3 <> <(:)
	none=0
	for ((round = 0; round < 50 && none < 3; round++)); do
		sweep KILL && none=0 || none=$((none + 1))
	done
fi
for one in "${!leaders[@]}"; do
	read -r pid start <<<"$one"
	endsession "$pid" "$start"
done
for dir in "${dirs[@]}"; do
	[[ $dir == */limpet-*/* ]] && rm -rf -- "$dir"
done
