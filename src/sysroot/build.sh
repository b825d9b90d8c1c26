#!/bin/sh
# Builds the cages' C library and headers into build/sysroot: musl, fetched as Debian's source
# package and checked by SHA-256, with the wasm32 port in this folder laid over it. Incremental;
# takes about half a minute.
# Usage: src/sysroot/build.sh      MUSL_TARBALL=FILE uses that file instead of fetching
set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
llvm=${LLVM_SUFFIX--22}
work=$top/build/musl
out=$top/build/sysroot
. "$here/MUSL"

die() { echo "build.sh: $*" >&2; exit 1; }

for tool in clang llvm-ar llvm-ranlib llvm-nm; do
	command -v "$tool$llvm" >/dev/null || die "$tool$llvm not found: run scripts/setup.sh"
done

# The inputs of a full rebuild: the source, the headers of the port, the flags, the compiler. Clang
# takes a linux triple for a system with shared libraries, hence -fno-pic.
cflags="--target=wasm32-unknown-linux-musl -fno-pic -O2 -matomics -mbulk-memory -mmutable-globals
	-msign-ext -mnontrapping-fptoint -msimd128 -mexception-handling -mllvm -wasm-use-legacy-eh=false
	-ffunction-sections -fdata-sections"
# The one file that calls setjmp: without the first the compiler takes it for a function, without
# the second nobody catches what longjmp throws.
setjmp="obj/src/time/timer_create.o: CFLAGS_ALL += -mllvm -wasm-enable-sjlj -Xclang -exception-model=wasm"
key=$({
	echo "$sha256 $cflags $setjmp"
	"clang$llvm" --version
	cd "$here" && cat MUSL reuse patches/* && find arch crt include src -type f | sort && find arch -type f | sort | xargs cat
} | sha256sum)

unpack() {
	tarball=${MUSL_TARBALL:-$top/build/downloads/$file}
	[ -f "$tarball" ] || "$here/fetch.sh" "$package" "$file" "$sha256"
	echo "$sha256  $tarball" | sha256sum -c --status - 2>/dev/null || die "$tarball is not musl $version"
	# Installed headers go too: they look newer than those of a newer tarball.
	rm -rf "$work" "$out/include"
	mkdir -p "$work"
	tar -xf "$tarball" -C "$work" --strip-components=1
	for patch in "$here"/patches/*; do
		patch -s -d "$work" -p1 <"$patch" || die "$patch does not apply"
	done
	grep -v '^#' "$here/reuse" | while read -r from to; do
		mkdir -p "$work/$(dirname "$to")"
		cp "$work/$from" "$work/$to"
	done
	cat >"$work/config.mak" <<-END
		ARCH = wasm32
		srcdir = .
		prefix =
		CC = clang$llvm
		AR = llvm-ar$llvm
		RANLIB = llvm-ranlib$llvm
		LIBCC =
		CFLAGS_AUTO = $(echo $cflags)
		CFLAGS_C99FSE = -std=c99 -ffreestanding -nostdinc
		CFLAGS = -w
		MALLOC_DIR = tlsf
		OPTIMIZE_GLOBS = internal/*.c malloc/*.c string/*.c
		$setjmp
	END
}

# Copies the files that differ, so that make rebuilds only those.
overlay() {
	(cd "$here" && find arch crt include src -type f) | while read -r f; do
		cmp -s "$here/$f" "$work/$f" && continue
		mkdir -p "$work/$(dirname "$f")"
		cp "$here/$f" "$work/$f"
	done
}

if [ "$(cat "$work/.key" 2>/dev/null)" != "$key" ]; then
	unpack
fi
overlay
empty="lib/libm.a lib/librt.a lib/libpthread.a lib/libcrypt.a lib/libutil.a lib/libxnet.a lib/libresolv.a lib/libdl.a"
# shellcheck disable=SC2086
make -s -C "$work" -j"$(nproc)" lib/libc.a lib/crt1.o $empty
make -s -C "$work" install-headers DESTDIR="$out"
mkdir -p "$out/lib"
for f in libc.a crt1.o; do cmp -s "$work/lib/$f" "$out/lib/$f" || cp "$work/lib/$f" "$out/lib/"; done
# shellcheck disable=SC2086
(cd "$work" && cp $empty "$out/lib/")
"$here/uapi.sh" "$out/include"

"llvm-nm$llvm" --defined-only --extern-only --no-sort "$out/lib/libc.a" 2>/dev/null |
	sed -n 's/^[0-9a-f]* [A-Z] //p' | LC_ALL=C sort -u >"$work/symbols.txt"
if ! diff -u "$here/expected/symbols.txt" "$work/symbols.txt" >&2; then
	die "libc.a's symbols changed: if that is meant, cp build/musl/symbols.txt src/sysroot/expected/symbols.txt"
fi
echo "$key" >"$work/.key"
