#!/bin/sh
# Prints a note if there is a newer patch release of the Wasmtime that Cargo.toml pins. It never
# fails; without a network it prints that it does not know.
# Usage: scripts/newer_patch.sh [CARGO.TOML]
set -u

manifest=${1:-$(dirname "$0")/../Cargo.toml}
pinned=$(sed -n 's/^wasmtime = .*version = "=\([0-9.]*\)".*/\1/p' "$manifest")
line=${pinned%.*}
# Run from elsewhere: here cargo would print the version in Cargo.lock.
newest=$(cd / && timeout 30 cargo info --quiet --color never "wasmtime@$line" 2>/dev/null | sed -n 's/^version: \([0-9.]*\).*/\1/p')
case $newest in
"$pinned") ;;
"$line".*) echo "note: Wasmtime $newest is out, Cargo.toml pins $pinned: see docs/wasmtime-upgrade.md" ;;
*) echo "note: whether there is a newer Wasmtime than $pinned in its line is not known here" ;;
esac
