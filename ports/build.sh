#!/bin/sh
# Builds programs from Debian's sources for a cage and installs them into a root.
#
#     ports/build.sh [--root DIR] [--test] [--native] [--fork=never|always] [NAME]...   no NAME: all
#
# --test runs NAME's own tests, on Linux and in a cage. --native builds for Linux only; --fork=...
# links a copy of a cage's build with that option. Neither installs anything: the benchmark
# tests/benchmarks/ports.py compares them. Ports are built in parallel, with as many jobs as there
# are processors (or JOBS); a failure does not stop the others.
# A port is ports/NAME/recipe (see ports/README.md). Work and logs are in build/ports/NAME.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/.." && pwd)
export JOBS="${JOBS:-$(nproc)}"
root=$top/lindfs
test=
side=cage

die() { echo "ports: $*" >&2; exit 1; }
all() { (cd "$here" && grep -L "^optional=" */recipe | sed 's,/recipe,,'); }

while [ $# -gt 0 ]; do
	case $1 in
	--root) [ $# -gt 1 ] || die "--root needs a directory"; root=$2; shift 2 ;;
	--test) test=1; shift ;;
	--native) side=native; shift ;;
	--fork=never | --fork=always) side=${1#--fork=}; shift ;;
	-*) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2 ;;
	*) break ;;
	esac
done
# shellcheck disable=SC2046
[ $# -gt 0 ] || set -- $(all)
for name in "$@"; do [ -f "$here/$name/recipe" ] || die "no port $name; there are: $(cd "$here" && echo */recipe | sed 's,/recipe,,g')"; done
[ -x "$top/target/release/lind-boot" ] && [ -f "$top/build/sysroot/lib/libc.a" ] || die "the runtime is not built: run \`make\`"
mkdir -p "$root" "$top/build/ports"
root=$(cd "$root" && pwd)
# First lines of scripts name programs there. A checkout has the link, and nothing yet where it
# leads.
[ -e "$root/usr/bin" ] || [ -L "$root/usr/bin" ] || { mkdir -p "$root/usr" && ln -s ../bin "$root/usr/bin"; }
plan=$(mktemp -d "$top/build/ports/plan.XXXXXX")
watcher=
trap '[ -z "$watcher" ] || kill "$watcher" 2>/dev/null; rm -rf "$plan"' EXIT
trap 'exit 130' INT TERM

# Prints the list $2 (needs, host_needs, ...) of port $1's recipe, for side $3.
said() { (needs='' host_needs='' test_needs='' toolchain='' side=$3; . "$here/$1/recipe"; eval "echo \$$2"); }

# Adds the building of port $1 on side $2 to the plan, and what has to be there before.
add() {
	! grep -qs "^$1\.$2:" "$plan/makefile" || return 0
	before=
	for port in $(said "$1" needs "$2"); do before="$before $port.$2"; done
	for port in $(said "$1" host_needs "$2"); do before="$before $port.native"; done
	case $2 in never | always) before=$1.cage ;; esac
	printf '%s.%s: %s\n\t+@"%s/port.sh" "%s" "%s" %s %s 2>&1\n' "$1" "$2" "$before" "$here" "$plan" "$root" "$1" "$2" >>"$plan/makefile"
	toolchains="$toolchains $(said "$1" toolchain "$2")"
	for target in $before; do add "${target%.*}" "${target##*.}"; done
}

# Builds the compiler for another language than C and C++, or finds that it is there.
build_toolchain() {
	echo "$1 for cages: its library" >"$plan/toolchain.step"
	"$top/src/sysroot/$1.sh" || echo "ports: $1 for cages did not build; what needs it fails" >&2
	rm -f "$plan/toolchain.step"
}

# Every half minute: what is being built, and how far it is.
watch() {
	while sleep 30 >/dev/null 2>&1; do
		for step in "$plan"/*.step; do
			[ ! -f "$step" ] || printf '    %s, %d s\n' "$(cat "$step")" $(($(date +%s) - $(stat -c %Y "$step")))
		done
	done 2>/dev/null
}

# In braces, so that an edit of this file does not reach a run of it.
{
toolchains=
for name in "$@"; do
	add "$name" "$side"
	[ -n "$test" ] || continue
	add "$name" native
	for need in $(said "$name" test_needs cage); do add "$need" cage; done
done
targets=$(sed -n 's/^\([^\t:]*\):.*/\1/p' "$plan/makefile")
echo "$targets" >"$plan/targets"
watch &
watcher=$!
for toolchain in $(printf '%s\n' $toolchains | sort -u); do build_toolchain "$toolchain"; done
# A plain `make` in a recipe takes its jobs from this one's.
# shellcheck disable=SC2086
env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make -k -s -j"$JOBS" -f "$plan/makefile" $targets 2>"$plan/make.log" || true
kill "$watcher" 2>/dev/null || true
watcher=

failed=
for target in $targets; do [ -f "$plan/$target.done" ] || failed="$failed $target"; done
if [ -n "$test" ]; then
	for name in "$@"; do
		case " $failed " in *" $name."*) continue ;; esac
		"$here/port.sh" "$plan" "$root" "$name" test || failed="$failed $name.test"
	done
fi
[ -z "$failed" ] || die "failed, or not built for lack of one that failed:$(echo "$failed" | sed 's/\.cage//g')"
exit
}
