# Linking, and what the result is.
printf 'int twice(int x) { return 2 * x; }\n' >a.c
printf '#include <stdio.h>\nint twice(int);\nint main(void) { printf("%%d\\n", twice(21)); return 0; }\n' >b.c
magic() { [ "$(od -An -c -N4 "$1" | tr -d ' ')" = '\0asm' ]; }

set -x
lind-cc a.c b.c && magic a.out && [ -x a.out ]
lind-cc -c a.c b.c
lind-cc a.o b.o -o prog && magic prog
lind-cc a.c b.o -lm -lpthread -lc -lgcc -o prog2 && magic prog2
lind-cc -s a.o b.o -o small
[ "$(stat -c %s small)" -lt "$(stat -c %s prog)" ]
! $TRIPLE-nm small 2>/dev/null | grep -q twice
$TRIPLE-nm prog | grep -q twice

cp prog stripped && $TRIPLE-strip stripped && magic stripped && [ "$(stat -c %s stripped)" -lt "$(stat -c %s prog)" ]

$TRIPLE-size prog >sizes && [ -s sizes ]
$TRIPLE-gcc-ar rc libother.a a.o && $TRIPLE-gcc-ranlib libother.a && $TRIPLE-gcc-nm libother.a | grep -q twice

# Archives, -L and -l, the linker's own options in their three spellings.
$TRIPLE-ar rc libtwice.a a.o && $TRIPLE-ranlib libtwice.a
lind-cc b.o -L. -ltwice -o prog3 && magic prog3 && mkdir again
lind-cc b.o -L . -l twice -Wl,--as-needed,-z,now -Wl,-rpath -Wl,/nowhere -static -o again/prog3 && cmp again/prog3 prog3
lind-cc b.o -L. -ltwice -Wl,--exclude-libs,ALL -Wl,--defsym,x=1 -Wl,--undefined-version,--no-warn-rwx-segments -o again/prog3 && cmp again/prog3 prog3
lind-cc -Wl,--whole-archive libtwice.a -Wl,--no-whole-archive b.o -o prog5 && magic prog5
# States pushed and popped, as by CMake: the C library is not taken whole.
lind-cc -Wl,--push-state,--whole-archive libtwice.a -Wl,--pop-state b.o -o prog12 && [ "$(stat -c %s prog12)" -lt $((2 * $(stat -c %s prog))) ]
# Values of the linker's options in words of their own.
printf 'int __real_twice(int);\nint __wrap_twice(int x) { return __real_twice(x); }\n' >wrap.c
lind-cc -Wl,--wrap,twice -Wl,-u,twice -Xlinker --export -Xlinker twice a.o b.o wrap.c -o prog11 && magic prog11
$TRIPLE-nm prog11 | grep -q ' T __wrap_twice'

# A device is written to, not replaced, even by root; and no file is made beside it.
ln -s /dev/null sink && lind-cc a.o b.o -o sink && [ -L sink ]
lind-cc -shared a.o -o sink && [ -L sink ]
echo '#include <dlfcn.h>
int main(void) { return !dlopen(0, RTLD_NOW); }' >self.c
lind-cc -rdynamic self.c -o sink && [ -L sink ] && [ ! -e sink.link ]

# Partial links.
lind-cc -r a.o b.o -o ab.o && lind-cc ab.o -o prog6 && magic prog6
lind-cc -nostdlib -Wl,-r a.o b.o -o ab2.o && lind-cc ab2.o -o prog6
$TRIPLE-ld -r a.o b.o -o ab3.o && lind-cc ab3.o -o prog7
# A configure script's probe for a function in a library that is named before the probe.
echo 'int probed(int a, double b) { return a + (int)b; }' >l.c && lind-cc -O2 -c l.c && $TRIPLE-ar rcs libl.a l.o
echo 'char probed(); int main(void) { return probed(); }' >p.c
lind-cc -O2 -w -L. -ll p.c -o prog9 && magic prog9
# A weak function that is nowhere, of which only the address is asked for.
printf '#include <stdio.h>\n__attribute__((weak)) int missing(void);\nint main(void) { return printf("%%d\\n", missing != 0) < 0; }\n' >weak.c
lind-cc -O1 weak.c -o weak.wasm
magic weak.wasm
# -z with its word attached.
lind-cc -O2 -zmuldefs a.c b.c -o prog10 && magic prog10

# Which linker it is, and that it makes shared libraries: libtool goes by these words.
$TRIPLE-ld -v | grep -q 'LLD.*compatible with GNU linkers' && lind-cc -Wl,-v | grep -q 'compatible with GNU linkers'
$TRIPLE-ld --help | grep -q ': supported targets:.* elf'

# The linker alone.
sysroot=$(lind-cc -print-file-name=crt1.o) && sysroot=${sysroot%/lib/crt1.o}
$TRIPLE-ld -o prog8 "$sysroot/lib/crt1.o" a.o b.o -L"$sysroot/lib" -lc "$(lind-cc -print-libgcc-file-name)" && magic prog8

# A failed link says what is missing and leaves nothing behind.
! lind-cc b.c -o broken 2>err
grep -q 'undefined symbol: twice' err
[ ! -e broken ] && [ -z "$(ls | grep '\.link$')" ]
[ -z "$(ls /tmp | grep "lind-cc.$$" || true)" ]

# With no sysroot the message says what to do.
! SYSROOT=$PWD/nowhere lind-cc b.c a.c -o x 2>err
grep -q 'make sysroot' err && [ "$(wc -l <err)" = 1 ]

# main in its forms.
for main in 'main(void)' 'main()' 'main(int argc, char **argv)' 'main(int argc, char **argv, char **envp)'; do
	echo "int $main { return 0; }" >m.c && lind-cc m.c -o m && magic m
done

# setjmp with -flto: the linker compiles.
cat >jump.c <<'END'
#include <setjmp.h>
static jmp_buf buf;
int main(void) { if (setjmp(buf)) return 0; longjmp(buf, 1); }
END
lind-cc -O2 -flto jump.c -o jump && lind-cc -c -flto jump.c && lind-cc jump.o -o jump
$TRIPLE-objdump -d jump | grep -q try_table
