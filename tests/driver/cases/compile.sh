# Compiling without linking, as gcc does it.
cat >a.c <<'END'
#include "a.h"
int twice(int x) { return A * x; }
END
echo '#define A 2' >a.h
printf 'int twice(int); int main(void) { return twice(3); }\n' >b.c

set -x
lind-cc -c a.c
file a.o | grep -i 'webassembly\|wasm' || od -An -c -N4 a.o | grep asm
lind-cc -c a.c -o other.o && cmp a.o other.o
lind-cc -c a.c b.c && [ -f b.o ]
lind-cc -S a.c && grep -q i32.shl a.s || grep -q i32.add a.s || grep -q i32.mul a.s
lind-cc -E a.c | grep -q 'return 2 \* x'
lind-cc -E -dM -x c /dev/null | grep -q '__linux__ 1'
[ "$(lind-cc -M a.c | tr -d '\\\n' | tr -s ' ')" = 'a.o: a.c a.h' ]
lind-cc -MMD -MF deps -c a.c && grep -q a.h deps
echo 'int x = 1;' | lind-cc -x c -c - -o in.o
lind-cc -fsyntax-only a.c
[ "$(lind-cc -dumpmachine)" = "$TRIPLE" ]
lind-cc --version | grep -q clang
for query in -dumpversion '-dumpfullversion -dumpversion'; do lind-cc $query | grep -qx '[0-9.]*'; done
[ "$(lind-cc -print-multi-os-directory)" = . ] && lind-cc -print-multiarch
# How meson finds out which linker it has.
lind-cc -Wl,--version | head -n 1 | grep -q LLD
[ "$(lind-cc -print-prog-name=ar)" != ar ]
# Options that do not apply are taken quietly.
[ -z "$(lind-cc -m64 -march=native -fPIC -pthread -pipe -static -c a.c -o q.o 2>&1)" ]
lind-cc -x c -E -v - </dev/null 2>&1 >/dev/null | grep -A 1 'search starts here' | grep -q sysroot/include
# Errors are errors.
! lind-cc -c nothere.c
! lind-cc -c a.c b.c -o both.o
! lind-cc
# An implicit declaration is what it was in the compilers of the time.
echo 'int f(void) { return g(); }' >old.c
lind-cc -c old.c
! lind-cc -Werror=implicit-function-declaration -c old.c
# Response files.
echo '-c a.c -o "from response.o"' >args && lind-cc @args && [ -f 'from response.o' ]
printf '@loop' >loop && ! lind-cc @loop 2>err && grep -q 'contains itself' err && [ "$(wc -l <err)" = 1 ]
echo "-c 'a.c" >args && ! lind-cc @args 2>err && grep -q 'quotation' err && [ "$(wc -l <err)" = 1 ]
# A name that is attached to its option.
lind-cc -c a.c -obuilt.o && [ -f built.o ]
# Interrupted, it ends by the signal, says nothing, and leaves nothing.
mkfifo wait.c && mkdir made && ! TMPDIR=$PWD/made timeout -s INT 1 setsid lind-cc wait.c 2>err && [ ! -s err ] && [ -z "$(ls made)" ]
