#!/bin/sh
# Builds the cages' C++ library into build/sysroot: libc++, libc++abi and libunwind, fetched as
# Debian's source package of LLVM and checked by SHA-256. Takes about a minute the first time, and
# no time while source, flags and C headers stay the same.
# Usage: src/sysroot/cxx.sh        LLVM_TARBALL=FILE uses that file instead of fetching
set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
llvm=${LLVM_SUFFIX--22}
work=$top/build/cxx
out=$top/build/sysroot
. "$here/LLVM"

die() { echo "cxx.sh: $*" >&2; exit 1; }

for tool in cmake ninja "llvm-ar$llvm"; do
	command -v "$tool" >/dev/null || die "$tool not found: run scripts/setup.sh"
done
[ -f "$out/lib/libc.a" ] || die "no libc.a in build/sysroot: run make sysroot"
[ -x "$top/target/release/lind-passes" ] || die "lind-passes is not built: run make programs"

options="
	-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_BUILD_TYPE=Release
	-DCMAKE_C_COMPILER_WORKS=ON -DCMAKE_CXX_COMPILER_WORKS=ON -DCMAKE_ASM_COMPILER_WORKS=ON
	-DLLVM_ENABLE_RUNTIMES=libunwind;libcxxabi;libcxx -DLLVM_INCLUDE_TESTS=OFF -DLLVM_INCLUDE_DOCS=OFF
	-DLIBUNWIND_ENABLE_SHARED=OFF -DLIBUNWIND_HIDE_SYMBOLS=ON -DLIBUNWIND_ENABLE_ASSERTIONS=OFF
	-DLIBUNWIND_USE_COMPILER_RT=ON
	-DLIBCXXABI_ENABLE_SHARED=OFF -DLIBCXXABI_ENABLE_ASSERTIONS=OFF -DLIBCXXABI_ENABLE_EXCEPTIONS=ON
	-DLIBCXXABI_ENABLE_THREADS=ON -DLIBCXXABI_HAS_PTHREAD_API=ON -DLIBCXXABI_USE_LLVM_UNWINDER=ON
	-DLIBCXXABI_USE_COMPILER_RT=ON
	-DLIBCXX_ENABLE_SHARED=OFF -DLIBCXX_CXX_ABI=libcxxabi -DLIBCXX_HAS_MUSL_LIBC=ON
	-DLIBCXX_ENABLE_EXCEPTIONS=ON -DLIBCXX_ENABLE_THREADS=ON -DLIBCXX_HAS_PTHREAD_API=ON
	-DLIBCXX_ENABLE_FILESYSTEM=ON -DLIBCXX_USE_COMPILER_RT=ON -DLIBCXX_ENABLE_TIME_ZONE_DATABASE=OFF
	-DLIBCXX_INCLUDE_TESTS=OFF -DLIBCXX_INCLUDE_BENCHMARKS=OFF"
flags="-fwasm-exceptions -ffunction-sections -fdata-sections"
optimised="-O2 -DNDEBUG"

# The inputs of a rebuild: the source, our flags and the driver's, the compiler, the C headers.
key=$({
	echo "$sha256 $options $flags $optimised"
	"clang$llvm" --version
	PYTHONPATH=$top/scripts python3 -c 'from driver import build; print(build.FEATURES, build.TARGET, build.BRANCHES, build.UNROLLING, build.EXCEPTIONS)'
	cat "$here/cxx.sh"
	cd "$out/include" && find . -name c++ -prune -o -type f -print | LC_ALL=C sort | xargs cat
} | sha256sum)
unpack() {
	[ "$(cat "$work/.unpacked" 2>/dev/null)" != "$sha256" ] || return 0
	tarball=${LLVM_TARBALL:-$top/build/downloads/$file}
	[ -f "$tarball" ] || "$here/fetch.sh" "$package" "$file" "$sha256"
	echo "$sha256  $tarball" | sha256sum -c --status - 2>/dev/null || die "$tarball is not LLVM $version"
	rm -rf "$work"
	mkdir -p "$work/source"
	# libc has the parsing of numbers; tests/cxx builds the tests.
	tar -xf "$tarball" -C "$work/source" --strip-components=1 --wildcards --no-wildcards-match-slash \
		'*/libcxx' '*/libcxxabi' '*/libunwind' '*/runtimes' '*/cmake' '*/libc/shared' '*/libc/src/__support' '*/libc/hdr' \
		'*/libc/include' '*/llvm/cmake' '*/llvm/utils/llvm-lit'
	echo "$sha256" >"$work/.unpacked"
}

bin=$top/scripts/bin

library() {
	[ "$(cat "$work/.key" 2>/dev/null)" != "$key" ] || [ ! -d "$out/include/c++/v1" ] || return 0
	echo "building the C++ library, about a minute"
	unpack
	# Installed headers would be found before those being built.
	rm -rf "$work/objects" "$work/root" "$out/include/c++" "$work/.key" "$work/.ours"
	log=$work/build.log
	# shellcheck disable=SC2086
	{
		cmake -G Ninja -S "$work/source/runtimes" -B "$work/objects" $options -DCMAKE_INSTALL_PREFIX="$work/root" \
			-DCMAKE_C_COMPILER="$bin/lind-cc" -DCMAKE_CXX_COMPILER="$bin/lind-c++" -DCMAKE_ASM_COMPILER="$bin/lind-cc" \
			-DCMAKE_AR="$(command -v "llvm-ar$llvm")" -DCMAKE_RANLIB="$(command -v "llvm-ranlib$llvm")" \
			-DCMAKE_C_FLAGS="$flags" -DCMAKE_CXX_FLAGS="$flags" \
			-DCMAKE_C_FLAGS_RELEASE="$optimised" -DCMAKE_CXX_FLAGS_RELEASE="$optimised"
		ninja -C "$work/objects" install
	} >"$log" 2>&1 || { grep -m 5 'error:' "$log" >&2; die "see $log"; }
	mkdir -p "$out/include/c++"
	cp -R "$work/root/include/c++/v1" "$out/include/c++/v1"
	cp "$work/root/lib/libc++.a" "$work/root/lib/libc++experimental.a" "$work/root/lib/libunwind.a" "$out/lib/"
	# No program links the objects again.
	rm -rf "$work/objects"
	echo "$key" >"$work/.key"
}

# Our own parts go into libc++abi: the exceptions' tag, and the functions around main and around a
# thread's function.
ours() {
	own=$(cat "$here"/cxx/* "$work/.key" | sha256sum)
	[ "$(cat "$work/.ours" 2>/dev/null)" != "$own" ] || [ ! -f "$out/lib/libc++abi.a" ] || return 0
	cp "$work/root/lib/libc++abi.a" "$work/libc++abi.a"
	for source in "$here"/cxx/*; do
		object=$work/$(basename "${source%.*}").o
		"$bin/lind-c++" -O2 -c "$source" -o "$object"
		"llvm-ar$llvm" rs "$work/libc++abi.a" "$object"
	done
	mv "$work/libc++abi.a" "$out/lib/libc++abi.a"
	echo "$own" >"$work/.ours"
}

library
ours
