# shellcheck shell=sh disable=SC2154 # What a function needs is defined by who calls it.

# What limpet has a machine do before there is a limpet, by whatever POSIX sh is there. The text is sent to its standard input, and
# then the name of a function, with variables in front. Lines of an answer begin with $m.

limpet_say() { printf '%s %s\n' "$m" "$*"; }

# Says what is there. $hash is that of the program which would be brought, and $bytes its size; $box is yes in a container.
limpet_probe() {
	PATH=${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}
	export PATH
	uid=$(id -u)
	limpet_say system "$(uname -s) $(uname -m)"
	limpet_say uid "$uid"
	limpet_say bash "$(command -v bash)"
	for tool in head gzip; do
		if command -v "$tool" >/dev/null 2>&1; then limpet_say tool "$tool"; fi
	done
	limpet=$(command -v limpet)
	if [ -n "$limpet" ] && [ "$ask" = yes ]; then
		limpet_say asking "$limpet" # It may not answer. What is still there after a while is killed, where there is a timeout(1) for that.
		bound=
		if timeout 20 true >/dev/null 2>&1; then bound="timeout -s KILL 20"; fi
		limpet_say limpet "$($bound "$limpet" connect --protocol 2>/dev/null) $limpet"
	fi

	# The directories for programs that are brought: of the user, and then for temporary files.
	dir=
	case ${XDG_CACHE_HOME-} in
	/*) dir=$XDG_CACHE_HOME/limpet/bin ;;
	*)
		case ${HOME-} in
		/*) dir=$HOME/.cache/limpet/bin ;;
		esac
		;;
	esac
	for dir in "$dir" "/var/tmp/limpet-$uid/bin" "/tmp/limpet-$uid/bin" "/dev/shm/limpet-$uid/bin"; do
		if [ -z "$dir" ] || ! limpet_fits "$dir"; then continue; fi
		limpet_say dir "$dir"
		limpet_real "$dir/$hash" 2>/dev/null || continue
		own=$real
		file=$own/limpet-connect
		if ! limpet_fits "$own" || [ -h "$file" ] || [ ! -f "$file" ] || [ ! -x "$file" ]; then continue; fi
		limpet_parts "$own" yes
		line=$(ls -ldn "$file")
		limpet_say program "$line"
		# Another user may have put anything there, of any size: that is not read.
		if [ "$safe" = no ] || ! limpet_safe "$line" yes || [ "$length" != "$bytes" ]; then continue; fi
		sum=$(limpet_sum "$file")
		limpet_say brought "${sum:--} $(($(wc -c <"$file"))) $file"
	done
}

# Sets $real to the real path of a directory.
limpet_real() {
	real=$(cd "$1" && pwd -P && printf .) || return 1 # The dot keeps the line ends of the path.
	real=${real%??}
}

# Reports whether a path is one that a line of an answer can have.
limpet_fits() {
	odd=$(printf '\n\r') # The carriage return keeps the newline.
	case $1 in
	*"${odd%?}"* | *"${odd#?}"*) return 1 ;;
	esac
}

# Reports whether something is this user's, or root's, by a line of ls -ldn. It sets $owner and $length.
limpet_owned() {
	set -f
	# shellcheck disable=SC2086
	set -- $1
	set +f
	owner=${3-}
	length=${5-}
	[ "$owner" = "$uid" ] || [ "$owner" = 0 ]
}

# Reports whether nobody but this user and root can change what a line of ls -ldn is about. $2 is yes for the first one of a path, and no for those
# above it. It is checkParts of bring.go, which has the last word.
limpet_safe() {
	limpet_owned "$1" || return 1
	case $1 in
	l*) return 1 ;;
	?????w* | ????????w*) ;;
	*) return 0 ;;
	esac
	if [ "$2" = yes ]; then return 1; fi
	case $1 in
	?????????[tT]*) return 0 ;;
	esac
	[ "$box" = yes ] && [ "$owner" = 0 ]
}

# Says who may change which part of a path that has no links in it, and sets $safe, by limpet_safe with $2. If a link is there by now, the part is said
# to be one.
limpet_parts() {
	part=$1
	safe=yes
	first=$2
	while :; do
		line=$(ls -ldn "$part")
		limpet_say part "$line"
		limpet_safe "$line" "$first" || safe=no
		first=no
		if [ "$part" = / ]; then break; fi
		part=${part%/*}
		part=${part:-/}
	done
}

# Reports whether all links in a path are this user's, or root's. Others may lead anywhere.
limpet_links() {
	part=$1
	while [ "$part" != / ]; do
		if [ -h "$part" ] && ! limpet_owned "$(ls -ldn "$part")"; then return 1; fi
		part=${part%/*}
		part=${part:-/}
	done
}

# Prints the SHA-256 of a file; nothing where there is no program for that.
limpet_sum() {
	if command -v sha256sum >/dev/null 2>&1; then
		sha256sum <"$1"
	elif command -v shasum >/dev/null 2>&1; then
		shasum -a 256 <"$1"
	elif command -v openssl >/dev/null 2>&1; then
		openssl dgst -sha256 <"$1"
	fi | tr ' ' '\n' | grep -E '^[0-9a-f]{64}$'
}

# Makes $dir, for a program of $hash that is brought, and says what is in its way there, who may change it, and how much room there is. Where another
# user can change the way there, or what is there of it, nothing is made.
limpet_place() (
	umask 077
	if ! limpet_links "$dir"; then
		limpet_say taken "a link of another user is in the way there"
		return 0
	fi
	if [ ! -e "$dir" ]; then
		top=$dir
		until [ -e "$top" ] || [ -h "$top" ]; do
			top=${top%/*}
			top=${top:-/}
		done
		limpet_real "$top" || return 1
		top=$real
		if ! limpet_fits "$top"; then
			limpet_say taken "there is a line end in its path"
			return 0
		fi
		if ! parts=$(limpet_parts "$top" no && [ "$safe" = yes ]); then
			printf '%s\n' "$parts"
			return 0
		fi
	fi
	mkdir -p "$dir" || return 1
	limpet_real "$dir" || return 1
	place=$real
	if ! limpet_fits "$place"; then
		limpet_say taken "there is a line end in its path"
		return 0
	fi
	limpet_say real "$place"
	own=$place/$hash
	limpet_parts "$place" yes
	if [ -h "$own" ]; then # Who could change where it leads to is not known.
		limpet_say taken "$own is a link: remove it there"
	elif [ ! -e "$own" ]; then
		:
	elif [ ! -d "$own" ]; then
		limpet_say taken "$own is no directory: remove it there"
	elif [ ! -w "$own" ]; then
		limpet_say taken "$own is not writable"
	elif [ -d "$own/limpet-connect" ] && [ ! -h "$own/limpet-connect" ]; then
		limpet_say taken "$own/limpet-connect is a directory: remove it there"
	else
		limpet_say own "$(ls -ldn "$own")"
	fi
	limpet_say room "$(df -Pk "$place" | tail -n 1)"
)

# Says whether programs can be executed in $dir, which nobody else can change.
limpet_try() (
	umask 077
	try=$dir/try-$m
	printf '#!/bin/sh\nexit 0\n' >"$try" && chmod 700 "$try" && "$try" && limpet_say executes
	rm -f "$try"
)

# Receives a program in $pieces of $size bytes, the last of $last, packed if $packed is yes, as $part in $dir. Each piece comes when it
# was said that it may: some shells, and some heads, read ahead.
limpet_receive() (
	umask 077
	new=$dir/part-$m # A pid is not enough: other machines may share the directory.
	: >"$new" || return 1
	i=0
	while [ "$i" -lt "$pieces" ]; do
		limpet_say ready "$i"
		i=$((i + 1))
		if [ "$i" -eq "$pieces" ]; then size=$last; fi
		# All of it is taken, also where there is no room: the shell must not meet it.
		head -c "$size" | { cat >>"$new" || cat >/dev/null; }
	done
	if [ "$packed" = yes ]; then gzip -dc <"$new" >"$new.out" && mv -f "$new.out" "$new"; fi
	limpet_say sum "$(limpet_sum "$new") $(wc -c <"$new")"
	limpet_say part "$new"
)

# Gives $part, which has arrived whole, its name, $file. If that is a link to a directory, mv would put it into the directory.
limpet_keep() (
	umask 077
	mkdir -p "${file%/*}" && chmod 700 "$part" || return 1
	if [ -h "$file" ]; then rm -f "$file"; fi
	mv -f "$part" "$file" && [ -f "$file" ]
)

# Removes $part, which has not.
limpet_drop() { rm -f "$part" "$part.out"; }
