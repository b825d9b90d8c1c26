#!/bin/sh
# Builds Rust's standard library for cages into build/rust, with Debian's compiler and its source.
# Takes two to five minutes the first time, and no time while packages, patches and the C headers
# stay the same. Optional: nothing else needs it.
# Usage: src/sysroot/rust.sh        then scripts/bin/cargo-lind is cargo for cages
set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
target=wasm32-lind-linux-musl
work=$top/build/rust
jobs=${JOBS:-$(nproc)}

die() { echo "rust.sh: $*" >&2; exit 1; }

for tool in cargo apt-get dpkg-deb patch; do command -v "$tool" >/dev/null || die "$tool not found: run scripts/setup.sh"; done
[ -f "$top/build/sysroot/lib/libc++abi.a" ] || die "no C++ library in build/sysroot: run make cxx"

# Compiler and source have to be of the same version: each depends on the other's internals. Debian
# has one such pair, which it replaces now and then.
version_of() { apt-cache policy "$1" | sed -n 's/^ *Candidate: //p'; }
version=$(version_of rustc-web)
[ -n "$version" ] && [ "$version" != "(none)" ] && [ "$(version_of rust-web-src)" = "$version" ] ||
	die "apt has no rustc-web and rust-web-src of one version, so there is no Rust for cages"

key=$({
	echo "$version"
	cat "$here/rust.sh" "$here/rust/$target.json" "$here/rust/patches/"*
	cd "$top/build/sysroot/include" && find . -type f | LC_ALL=C sort | xargs cat
} | sha256sum)
if [ "$(cat "$work/.key" 2>/dev/null)" = "$key" ]; then
	echo "Rust $version for cages is up to date"
	exit 0
fi

# The packages are unpacked, not installed: they would replace an installed Rust.
unpack() {
	rm -rf "$work"
	mkdir -p "$work/debian" "$work/packages"
	library=$(apt-cache depends libstd-rust-web-dev | sed -n 's/^ *Depends: \(libstd-rust-web-[0-9.]*\)$/\1/p')
	(cd "$work/packages" && apt-get download -qq rustc-web libstd-rust-web-dev "$library" rust-web-src) >"$work/fetch.log" 2>&1 ||
		die "cannot fetch Rust's packages; see $work/fetch.log"
	for package in "$work"/packages/*.deb; do dpkg-deb -x "$package" "$work/debian"; done
	rm -rf "$work/packages"
}

# A sysroot that has the compiler's own libraries, and the source with our changes.
prepare() {
	rustlib=$work/sysroot/lib/rustlib
	host=x86_64-unknown-linux-gnu
	mkdir -p "$rustlib/src/rust" "$rustlib/$target/lib" "$work/bin"
	ln -s "$work/debian/usr/lib/rustlib/$host" "$rustlib/$host"
	cp -r "$work"/debian/usr/src/rustc-*/library "$rustlib/src/rust/library"
	for patch in "$here"/rust/patches/*.patch; do
		patch -s -p1 -d "$rustlib/src/rust/library" <"$patch" || die "$(basename "$patch") does not apply to Rust $version"
	done
	cp "$here/rust/$target.json" "$work/"
	# For programs, which name the crate libc by a version: this one is newer than any that they may
	# name.
	cp -r "$rustlib"/src/rust/library/vendor/libc-* "$work/libc"
	sed -i '0,/^version = .*/s//version = "0.2.999"/' "$work/libc/Cargo.toml"
	cat >"$work/bin/rustc" <<-END
		#!/bin/sh
		export LD_LIBRARY_PATH=$work/debian/usr/lib/x86_64-linux-gnu PATH="$top/scripts/bin:\$PATH"
		exec $work/debian/usr/bin/rustc --sysroot $work/sysroot "\$@"
	END
	chmod +x "$work/bin/rustc"
}

# cargo builds the standard library beside a program, of the crates that came along. The result goes
# into the sysroot, so that no program has to build it again.
build() {
	mkdir -p "$work/seed/src"
	printf '[package]\nname = "seed"\nversion = "0.0.0"\nedition = "2021"\n[workspace]\n' >"$work/seed/Cargo.toml"
	echo 'fn main() {}' >"$work/seed/src/main.rs"
	(cd "$work/seed" && RUSTC=$work/bin/rustc RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=$work/made CARGO_PROFILE_RELEASE_DEBUG=0 \
		CARGO_PROFILE_RELEASE_LTO=false CARGO_PROFILE_RELEASE_INCREMENTAL=false \
		cargo build -q --release -j"$jobs" -Zbuild-std=std,panic_unwind,panic_abort,test -Zjson-target-spec --target "$work/$target.json" \
		--config 'source.crates-io.replace-with="vendored"' --config "source.vendored.directory='$rustlib/src/rust/library/vendor'") \
		>"$work/build.log" 2>&1 || { tail -n 20 "$work/build.log" >&2; die "the standard library did not build; see $work/build.log"; }
	cp "$work/made/$target/release/deps/"*.rlib "$work/sysroot/lib/rustlib/$target/lib/"
	rm -rf "$work/made" "$work/seed"
}

echo "building Rust's standard library for cages, some minutes"
unpack
prepare
build
echo "$key" >"$work/.key"
echo "Rust $version for cages is in $work; scripts/bin/cargo-lind uses it"
