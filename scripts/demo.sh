#!/bin/sh
# Builds Lind and shows it: a command confined to a temporary project, a new program behind a
# grate, the times of some calls. Exits with 1 if a result is wrong.
# Usage: scripts/demo.sh [--built]      with --built: builds nothing
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
log=$top/build/demo.log
steps=5
step=0
project=
worker=

# Kills running process groups and removes the project, however this script ends.
leave() {
	[ -z "$worker" ] || kill "$worker" 2>/dev/null || true
	[ -z "$project" ] || rm -rf "$project"
}
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

die() { echo "demo: $*" >&2; exit 1; }

# Shows the progress of the running step: a line that is overwritten on a terminal, one each half
# minute elsewhere.
watch() {
	every=30 begin='' end='
'
	[ ! -t 1 ] || { every=1 begin=$(printf '\r\033[K') end=; }
	started=$(date +%s)
	while sleep "$every"; do
		seconds=$(($(date +%s) - started))
		printf '%s      %d:%02d  %s%s' "$begin" $((seconds / 60)) $((seconds % 60)) \
			"$(tail -n 1 "$log" | tr -cd '[:print:]' | cut -c1-60)" "$end"
	done
}

# build WHAT TIME COMMAND...: one step. TIME is the expected time on two processors with nothing
# built yet.
build() {
	what=$1 time=$2
	shift 2
	step=$((step + 1))
	echo "[$step/$steps] $what, about $time the first time: $*"
	watch &
	worker=$!
	status=0
	(cd "$top" && "$@") >"$log" 2>&1 </dev/null || status=$?
	kill "$worker" 2>/dev/null || true
	wait "$worker" 2>/dev/null || true
	worker=
	[ ! -t 1 ] || printf '\r\033[K'
	[ "$status" = 0 ] || {
		tail -n 30 "$log" >&2
		die "$what: failed with status $status; all of its output is in $log"
	}
}

build_all() {
	mkdir -p "$top/build"
	echo "demo: builds Lind, bash and busybox in $steps steps: about 20 minutes the first time, and then seconds."
	step=1
	echo "[1/$steps] packages that are missing, about 2 min the first time: make setup"
	"$top/scripts/setup.sh"
	build "the runtime" "12 min" make programs
	build "the C library for cages" "1 min" make sysroot
	build "the grates" "3 min" make grates
	build "bash and busybox for cages" "3 min" make tools
}

# Prints a command as a user would type it, and runs it in the project.
show() {
	printf '\n$ %s\n' "$1"
	(cd "$project" && PATH=$top/target/release:$top/scripts/bin:$PATH && eval "$1")
}

confine() {
	printf '%s\n' one two >"$project/notes.txt"
	mkdir -p "$project/.git/hooks"
	echo
	echo "A command in a project. It can change files, but not what git would run afterwards:"
	! show "lind-boot run -v \"\$PWD\" -- bash -c 'echo three >>notes.txt; wc -l notes.txt; echo bad >.git/hooks/pre-commit'" ||
		die "the command did not fail"
	[ "$(wc -l <"$project/notes.txt")" = 3 ] || die "the command did not change notes.txt"
	[ -z "$(ls "$project/.git/hooks")" ] || die "the command wrote a hook"
}

compile() {
	cat >"$project/count.c" <<-'END'
		#include <stdio.h>

		int main(void)
		{
			FILE *file = fopen("/tmp/count", "w+");
			int number = 0;

			if (!file || fputs("42\n", file) < 0 || fseek(file, 0, SEEK_SET) || fscanf(file, "%d", &number) != 1)
				return 1;
			return printf("read %d from /tmp/count\n", number) < 0;
		}
	END
	mkdir "$project/tmp"
	echo
	echo "A program compiled now, behind a grate that keeps its files in memory:"
	show "lind_compile -o count.cwasm count.c && lind-boot --root . imfs_grate count" || die "count.c did not run behind imfs_grate"
	show "ls tmp    # nothing: the host never saw the file"
	[ -z "$(ls "$project/tmp")" ] || die "a file was written to the host"
}

measure() {
	echo
	echo "What calls cost on Linux, in a cage, and behind a grate:"
	show "$top/scripts/benchrunner.py --rounds 3 sys_geteuid geteuid-grate fs_read imfs-grate.fs_read 2>/dev/null" ||
		die "scripts/benchrunner.py failed"
}

case ${1-} in
'') build_all ;;
--built) ;;
*) sed -n '2,4s/^# //p' "$0"; exit 2 ;;
esac
project=$(mktemp -d)
confine
compile
measure
echo
echo "More programs (GNU tools, git, Python and others): make ports PORT=agent, about 20 minutes on two processors."
echo "That was it. README.md goes on from here; to type these commands, first: export PATH=$top/target/release:$top/scripts/bin:\$PATH"
