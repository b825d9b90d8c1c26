#!/bin/sh
# Runs tests/benchmarks/microbenches under `lind-boot --perf`, which counts and times the calls of
# each on stderr.
# Usage: scripts/microbench.sh [NAME]...   (default: all)
# It builds in a directory of its own under lindfs/, which it removes.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
boot=$here/target/release/lind-boot
[ -x "$boot" ] || { echo "microbench.sh: $boot is not built: run make" >&2; exit 2; }

place=$(mktemp -d "$here/lindfs/micro.XXXXXX")
trap 'rm -rf "$place"' EXIT
trap 'exit 130' INT TERM

# shellcheck disable=SC2046
[ $# -gt 0 ] || set -- $(cd "$here/tests/benchmarks/microbenches" && ls -- *.c | sed 's/\.c$//')
status=0
for name in "$@"; do
	echo "== $name"
	"$here/scripts/lind_compile" -O2 -std=c11 -o "$place/$name.cwasm" "$here/tests/benchmarks/microbenches/$name.c" >/dev/null
	"$boot" --root "$place" --perf "$name.cwasm" || { status=1; echo "$name: exit status $?" >&2; }
done
exit "$status"
