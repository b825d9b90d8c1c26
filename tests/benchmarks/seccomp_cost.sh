#!/bin/sh
# What the seccomp grate costs with 300 rules: umask allowed without conditions, then decided by its argument, alone, and behind the
# forward grate for comparison. Usage: tests/benchmarks/seccomp_cost.sh [ROUNDS]. Names of `.grate` files have no room for options.
set -eu

top=$(cd "$(dirname "$0")/../.." && pwd)
boot=$top/target/release/lind-boot
root=$top/lindfs
place=$root/seccomp-cost
mkdir -p "$place"
trap 'rm -rf "$place"' EXIT
make -s -C "$top/grates/seccomp"
make -s -C "$top/grates/forward"
"$top/scripts/lind_compile" -O2 -D_GNU_SOURCE -o "$place/umask.cwasm" "$top/tests/benchmarks/seccomp_cost/umask.c" >/dev/null

# 300 rules, the last of which is about umask, or about another call.
rules() {
	echo 'default = "allow"'
	for i in $(seq 1 299); do
		printf '[[rule]]\naction = "deny"\ncalls = ["prctl"]\nargs = { 0 = %d }\n' $((i + 100000))
	done
	printf '[[rule]]\naction = "deny"\ncalls = ["%s"]\n%s\n' "$1" "$2"
}
rules personality 'args = { 0 = 5 }' >"$place/free.toml"
rules umask 'args = { 0 = 5 }' >"$place/decided.toml"
# The same the other way round: everything denied but what is named.
{ echo 'default = "deny"'; printf '[[rule]]\naction = "allow"\ncalls = ["%%process", "%%fs", "%%memory", "%%signal", "%%sync", "%%time"]\n'; } >"$place/listed.toml"

for round in $(seq 1 "${1:-5}"); do
	"$boot" --root "$root" /seccomp-cost/umask.cwasm alone
	for policy in free listed decided; do
		"$boot" --root "$root" seccomp_grate -p "/seccomp-cost/$policy.toml" /seccomp-cost/umask.cwasm "$policy"
	done
	"$boot" --root "$root" forward_grate -n 95 /seccomp-cost/umask.cwasm forward
done
