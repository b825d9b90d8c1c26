#!/bin/sh
# Measures the cost of the seccomp grate with 300 rules: umask allowed without conditions, and
# decided by its argument, under policies that deny and that allow by default; alone and behind the
# forward grate for comparison. Usage: tests/benchmarks/seccomp_cost.sh [ROUNDS]. Each round runs
# all of them once, in turn. Prints minimum and median in ns a call, and how far the median is from
# what it should be compared with: a call alone, or a hop. Names of `.grate` files have no room for
# options.
set -eu

top=$(cd "$(dirname "$0")/../.." && pwd)
boot=$top/target/release/lind-boot
root=$top/lindfs
place=$root/seccomp-cost
mkdir -p "$place"
trap 'rm -rf "$place"' EXIT
make -s -C "$top/grates/seccomp" >/dev/null
make -s -C "$top/grates/forward" >/dev/null
"$top/scripts/lind_compile" -O2 -D_GNU_SOURCE -o "$place/umask.cwasm" "$top/tests/benchmarks/seccomp_cost/umask.c" >/dev/null

# 300 rules, of which 299 are about other calls and their arguments. $1: what is the default. $2:
# what the last says about which call.
rules() {
	printf 'default = "%s"\n' "$1"
	for i in $(seq 1 149); do
		printf '[[rule]]\naction = "deny"\ncalls = ["prctl"]\nargs = { 0 = %d }\n' $((i + 100000))
		printf '[[rule]]\naction = "deny"\ncalls = ["personality"]\nargs = { 0 = %d }\n' $((i + 100000))
	done
	printf '[[rule]]\naction = "allow"\ncalls = ["%%memory", "%%signal", "%%sync", "%%time", "read", "writev", "ioctl", "gettid", "set_tid_address"]\n'
	printf '[[rule]]\naction = "%s"\ncalls = ["umask"]\n%s\n' "$2" "$3"
}
rules allow allow '' >"$place/allow-free.toml"
rules deny allow '' >"$place/deny-free.toml"
rules allow deny 'args = { 0 = 5 }' >"$place/allow-decided.toml"
rules deny allow 'args = { 0 = 18 }' >"$place/deny-decided.toml"

for round in $(seq 1 "${1:-9}"); do
	"$boot" --root "$root" /seccomp-cost/umask.cwasm alone
	for policy in allow-free deny-free; do
		"$boot" --root "$root" seccomp_grate -p "root:/seccomp-cost/$policy.toml" /seccomp-cost/umask.cwasm "$policy"
	done
	"$boot" --root "$root" forward_grate -n 95 /seccomp-cost/umask.cwasm hop
	for policy in allow-decided deny-decided; do
		"$boot" --root "$root" seccomp_grate -p "root:/seccomp-cost/$policy.toml" /seccomp-cost/umask.cwasm "$policy"
	done
done | sort -k1,1 -k2,2n | awk -F'\t' '
	{ sub(/ ns/, "", $2); list[$1, count[$1]++] = $2 }
	function median(name) { n = count[name]; return n % 2 ? list[name, (n - 1) / 2] : (list[name, n / 2 - 1] + list[name, n / 2]) / 2 }
	function row(name, what, base) {
		printf "%-44s %6.1f %6.1f", what, list[name, 0], median(name)
		if (base) printf "  %+.1f", median(name) - median(base)
		print ""
	}
	END {
		printf "%-44s %6s %6s\n", "ns a call", "least", "median"
		row("alone", "umask alone")
		row("allow-free", "allowed, 300 rules, else allowed", "alone")
		row("deny-free", "allowed, 300 rules, else denied", "alone")
		row("hop", "umask through the forward grate")
		row("allow-decided", "decided by argument, 300 rules, else allowed", "hop")
		row("deny-decided", "decided by argument, 300 rules, else denied", "hop")
	}'
