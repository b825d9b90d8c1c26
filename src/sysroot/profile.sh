#!/bin/sh
# Builds the profile library of LLVM's compiler-rt into build/sysroot, from the source package that
# cxx.sh uses. Programs for a cage need it if they are compiled with -fprofile-generate or
# -fprofile-instr-generate. Takes no time while source and driver stay the same.
# Usage: src/sysroot/profile.sh        LLVM_TARBALL=FILE uses that file instead of fetching
set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../.." && pwd)
llvm=${LLVM_SUFFIX--22}
work=$top/build/profile
out=$top/build/sysroot/lib/libclang_rt.profile.a
. "$here/LLVM"

die() { echo "profile.sh: $*" >&2; exit 1; }

[ -f "$top/build/sysroot/lib/libc.a" ] || die "no libc.a in build/sysroot: run make sysroot"

key=$({ echo "$sha256"; "clang$llvm" --version; cat "$here/profile.sh" "$top"/scripts/driver/*.py; } | sha256sum)
[ "$(cat "$work/.key" 2>/dev/null)" != "$key" ] || [ ! -f "$out" ] || exit 0

unpack() {
	tarball=${LLVM_TARBALL:-$top/build/downloads/$file}
	[ -f "$tarball" ] || "$here/fetch.sh" "$package" "$file" "$sha256"
	echo "$sha256  $tarball" | sha256sum -c --status - 2>/dev/null || die "$tarball is not LLVM $version"
	rm -rf "$work"
	mkdir -p "$work/source"
	tar -xf "$tarball" -C "$work/source" --strip-components=2 --wildcards --no-wildcards-match-slash \
		'*/compiler-rt/lib/profile' '*/compiler-rt/include/profile'
	echo "$sha256" >"$work/.unpacked"
}

[ "$(cat "$work/.unpacked" 2>/dev/null)" = "$sha256" ] || unpack
# Counters in memory and files that are written at the end; what other systems and gcov's format
# need is left out.
parts="InstrProfiling InstrProfilingBuffer InstrProfilingFile InstrProfilingInternal InstrProfilingMerge InstrProfilingMergeFile
	InstrProfilingNameVar InstrProfilingPlatformLinux InstrProfilingUtil InstrProfilingValue InstrProfilingVersionVar
	InstrProfilingWriter InstrProfilingRuntime"
flags="-O2 -w -I$work/source/include -DCOMPILER_RT_HAS_UNAME=1 -DCOMPILER_RT_HAS_FCNTL_LCK=1 -DCOMPILER_RT_HAS_ATOMICS=1"
objects=
for part in $parts; do
	# The last one is a constructor in C++, which needs no part of the C++ library.
	source=$(echo "$work/source/lib/profile/$part".c*)
	# shellcheck disable=SC2086
	"$top/scripts/bin/lind-cc" $flags -c "$source" -o "$work/$part.o"
	objects="$objects $work/$part.o"
done
rm -f "$out"
# shellcheck disable=SC2086
"llvm-ar$llvm" rcs "$out" $objects
echo "$key" >"$work/.key"
