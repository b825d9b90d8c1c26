#!/bin/sh
# Installs the Linux headers that musl leaves to the kernel's package: /usr/include/linux and its
# neighbours, with asm/ written for the cages' ABI (x86-64's numbers and layouts, 32-bit pointers).
# Usage: uapi.sh INCLUDE_DIR
set -eu

include=$1
linux=${LINUX_HEADERS:-/usr/include}
arch=$linux/x86_64-linux-gnu/asm
[ -f "$linux/linux/version.h" ] || { echo "uapi.sh: no $linux/linux: run scripts/setup.sh" >&2; exit 1; }
[ -f "$arch/unistd_64.h" ] || arch=$linux/asm

if [ "$include/.linux" -nt "$linux/linux/version.h" ] && [ "$include/.linux" -nt "$0" ]; then
	exit 0
fi
for dir in linux asm-generic mtd misc rdma sound video; do
	rm -rf "${include:?}/$dir"
	cp -r "$linux/$dir" "$include/$dir"
done

rm -rf "${include:?}/asm"
mkdir "$include/asm"
for header in "$linux"/asm-generic/*.h; do
	name=${header##*/}
	echo "#include <asm-generic/$name>" >"$include/asm/$name"
done
# Not Debian's own asm/unistd.h: clang defines __ILP32__ for wasm32, which selects x32's numbers
# there.
cp "$arch/unistd_64.h" "$include/asm/unistd.h"
echo '#include <linux/byteorder/little_endian.h>' >"$include/asm/byteorder.h"
cat >"$include/asm/bitsperlong.h" <<'END'
#define __BITS_PER_LONG 32
#include <asm-generic/bitsperlong.h>
END
cat >"$include/asm/posix_types.h" <<'END'
typedef long long __kernel_long_t;
typedef unsigned long long __kernel_ulong_t;
#define __kernel_long_t __kernel_long_t
typedef unsigned short __kernel_old_dev_t;
#define __kernel_old_dev_t __kernel_old_dev_t
#include <asm-generic/posix_types.h>
END
date >"$include/.linux"
