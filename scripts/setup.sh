#!/bin/sh
# Installs the packages for building and testing, on Debian 12 or a system with its packages, as
# root or by sudo. Installed ones are skipped.
# Usage: scripts/setup.sh [PACKAGE]...      with PACKAGEs: those of Debian alone
set -eu

here=$(cd "$(dirname "$0")" && pwd)
packages="clang-22 lld-22 llvm-22 libclang-rt-22-dev-wasm32 make gcc g++ libc6-dev linux-libc-dev python3 patch
	cmake ninja-build wasi-libc ca-certificates bzip2 xz-utils zstd tcl git curl"
rust=1.95

die() { echo "setup.sh: $*" >&2; exit 1; }

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		die "not root and no sudo; as root, run: $*"
	fi
}

installed() { dpkg-query -W -f '${db:Status-Status}\n' "$1" 2>/dev/null | grep -q '^installed'; }

updated=
update() {
	[ -n "$updated" ] || as_root apt-get update -qq
	updated=1
}

get() {
	update
	echo "setup.sh: installs $*"
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq -o Dpkg::Use-Pty=0 --no-install-recommends "$@" >/dev/null
}

command -v apt-get >/dev/null ||
	die "needs apt. Elsewhere, install clang, lld and llvm 22 with compiler-rt for wasm32, make, gcc, patch and
cmake, ninja and python3, and give the sources of the C and C++ libraries as MUSL_TARBALL=musl-1.2.6.tar.gz and LLVM_TARBALL=FILE"

only=$*
missing=
for package in ${only:-$packages}; do
	installed "$package" || missing="$missing $package"
done
# shellcheck disable=SC2086
[ -z "$missing" ] || get $missing
[ -z "$only" ] || exit 0

# The benchmark runner's table and plots. Debian's packages serve Debian's own python3, pip any
# other.
python=$(command -v python3)
if ! "$python" -c 'import tabulate, rich, matplotlib' 2>/dev/null; then
	if [ "$(realpath "$python")" = "$(realpath /usr/bin/python3)" ]; then
		get python3-tabulate python3-rich python3-matplotlib
	else
		"$python" -m pip install -q -r "$here/requirements.txt"
	fi
fi

# For tests/wasi, which compares with Wasmtime's own engine.
"$python" -m pip --version >/dev/null 2>&1 || get python3-pip

# The lints of make check, pinned, below build/.
"$here/lint/run" --ready || "$here/lint/run" --install

# rust-toolchain.toml says which Rust; rustup fetches that one. Without rustup, another that is new
# enough does: Debian 12 has one for its browsers, which conflicts with the packages of an older
# one.
new_enough() { [ "$(printf '%s\n' "$rust" "${1:-0}" | sort -V | head -n 1)" = "$rust" ]; }
if ! command -v rustup >/dev/null; then
	cargo=${CARGO_HOME:-${HOME-}/.cargo}
	[ ! -x "$cargo/bin/rustup" ] || die "rustup is there, but not in PATH; type: . $cargo/env"
	version=$(cargo --version 2>/dev/null | cut -d' ' -f2)
	if [ -z "$version" ]; then
		update
		packaged=$(LC_ALL=C apt-cache policy cargo-web | sed -n 's/^ *Candidate: \([0-9.]*\).*/\1/p')
		! new_enough "$packaged" || get cargo-web rustc-web rust-web-clippy rustfmt-web
		version=$(cargo --version 2>/dev/null | cut -d' ' -f2)
	fi
	new_enough "$version" || die "all packages are there, but no Rust $rust or newer (found: ${version:-none}). Type this, and run it again:
	curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal
	. $cargo/env"
fi
