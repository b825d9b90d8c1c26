# Making shared libraries, and what the driver says of them.
cat >one.c <<'END'
int one(void) { return 1; }
int unwanted(void) { return 0; }
END
cat >two.c <<'END'
int one(void);
int two(void) { return one() + 1; }
END
printf '#include <stdio.h>\nint two(void);\nint main(void) { printf("%%d\\n", two()); return 0; }\n' >main.c
runs() { [ "$(lind_run --root "$PWD" "$1")" = "$2" ]; }

# The shell goes on behind a command that it expects to fail.
fails() { if "$@"; then echo "did not fail: $*"; exit 1; fi; }

set -x
# In one step, from objects, by the linker, with an archive of which only what is wanted is taken.
lind-cc -shared -fPIC one.c two.c -o libwhole.so
[ -x libwhole.so ]
[ "$($TRIPLE-ar t libwhole.so | head -n 1)" = lind.library ]
$TRIPLE-nm libwhole.so | grep -q ' T two'
lind-cc -c one.c two.c
$TRIPLE-ld -shared -soname libld.so.1 one.o two.o -o libld.so
grep -qa '^soname libld.so.1$' libld.so
echo 'int apart(void) { return 3; }' >apart.c
lind-cc -c apart.c
$TRIPLE-ar rcs libparts.a one.o apart.o
lind-cc -shared two.o -L. -lparts -o libpart.so
$TRIPLE-nm libpart.so >names
grep -q ' T one' names
fails grep -q apart names
lind-cc -shared two.o -Wl,--whole-archive libparts.a -Wl,--no-whole-archive -o liball.so
$TRIPLE-nm liball.so | grep -q ' T apart'
for library in whole part all; do
	lind-cc main.c -L. -l$library -o $library.wasm
	runs $library.wasm 2
	lind-ldd $library.wasm | grep -q "lib$library.so .* needed"
done
lind-cc main.c libld.so -o ld.wasm
runs ld.wasm 2
lind-cc -O2 -flto -shared one.c two.c -o liblto.so
lind-cc -O2 -flto main.c liblto.so -o lto.wasm
runs lto.wasm 2
# Any name of a file.
cp one.c 'größer als alle anderen.c'
lind-cc -shared two.c 'größer als alle anderen.c' -o libname.so
lind-cc main.c libname.so -o name.wasm
runs name.wasm 2
# A library to which other tools have been is one still.
cp libwhole.so indexed.so
$TRIPLE-ranlib indexed.so
lind-ldd indexed.so
lind-cc main.c indexed.so -o indexed.wasm
runs indexed.wasm 2
$TRIPLE-strip --strip-unneeded libwhole.so
lind-cc main.c libwhole.so -o stripped.wasm
runs stripped.wasm 2

# A library that another needs is found beside it, where -L or -rpath-link say, or missed by name.
mkdir -p deep
lind-cc -shared one.o -Wl,-soname,libone.so -o deep/libone.so
lind-cc -shared two.o deep/libone.so -Wl,-soname=libtwo.so -o libtwo.so
[ "$(lind-ldd libtwo.so)" = "	libone.so" ]
fails lind-cc main.c libtwo.so -o none.wasm 2>err
grep -q 'libone.so, needed by .*libtwo.so, not found' err
lind-cc main.c libtwo.so -Wl,-rpath-link,deep -o linked.wasm
runs linked.wasm 2
# --as-needed: what nobody refers to is not needed.
lind-cc -shared two.o one.o -Wl,--as-needed deep/libone.so -o libalone.so
[ "$(lind-ldd libalone.so)" = "	no shared libraries" ]
# It counts for what is behind it.
lind-cc -shared two.o one.o -Wl,--as-needed,--no-as-needed deep/libone.so -Wl,--as-needed -o libalone.so
[ "$(lind-ldd libalone.so)" = "	libone.so" ]
lind-cc main.c two.o one.o deep/libone.so -Wl,--as-needed -o alone.wasm
lind-ldd alone.wasm | grep -q 'libone.so .* needed'
lind-cc main.c two.o one.o -Wl,--as-needed deep/libone.so -o alone.wasm
lind-ldd alone.wasm >says
fails grep -q needed says
# An archive may be what refers to it.
$TRIPLE-ar rcs libtwos.a two.o
lind-cc main.c libtwos.a -Wl,--as-needed deep/libone.so -o archive.wasm
runs archive.wasm 2
# -l takes a shared library first, and an archive with -static or -Bstatic. Then a shared one by its
# file is refused.
cp libparts.a deep/libone.a
lind-cc -static main.c two.o -Ldeep -lone -o static.wasm
runs static.wasm 2
[ "$(lind-ldd static.wasm)" = "	no shared libraries" ]
lind-cc main.c two.o -Ldeep -Wl,-Bstatic -lone -Wl,-Bdynamic -o static.wasm
[ "$(lind-ldd static.wasm)" = "	no shared libraries" ]
lind-cc main.c two.o -Ldeep -Wl,-static -lone -Wl,-dy -o static.wasm
[ "$(lind-ldd static.wasm)" = "	no shared libraries" ]
lind-cc main.c two.o -Ldeep -lone -o shared.wasm
lind-ldd shared.wasm | grep -q libone.so
fails lind-cc -static main.c libld.so -o x.wasm 2>err
grep -q 'libld.so: a shared library, and -static' err

# A version script hides what it calls local.
printf 'V1 { global: on*; # and\n"two"; local: *; };\n' >script
lind-cc -shared one.c two.c -Wl,--version-script=script -o libscript.so
lind-cc main.c libscript.so -o script.wasm
runs script.wasm 2
printf '#include <dlfcn.h>\nint main(void) { void *l = dlopen("libscript.so", 2); return !dlsym(l, "one") + 2 * !!dlsym(l, "unwanted"); }\n' >looks.c
lind-cc looks.c --dlopen libscript.so -o looks.wasm
lind_run --root "$PWD" looks.wasm
# A name outweighs patterns, and each of these `*`.
printf 'int external(void) { return 1; }\nint kept(void) { return 1; }\nint key(void) { return 1; }\nint keep(void) { return 1; }\n' >names.c
printf 'V1 { global: external; k*; local: *; kept; };\n' >script
lind-cc -shared names.c -Wl,--version-script=script -o libnames.so
printf 'V1 { global: *; local: ke*; keep; }; V2 { global: key; } V1;\n' >script
lind-cc -shared names.c -Wl,--version-script=script -o libnames2.so
cat >looks.c <<'END'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	static const char *const names[] = { "external", "kept", "key", "keep" };
	for (int i = 1; i < argc; i++) {
		void *library = dlopen(argv[i], RTLD_NOW);
		for (int n = 0; n < 4; n++)
			printf("%d", dlsym(library, names[n]) != NULL);
		putchar('\n');
	}
	return 0;
}
END
lind-cc looks.c --dlopen libnames.so --dlopen libnames2.so -o looks.wasm
[ "$(lind_run --root "$PWD" looks.wasm libnames.so libnames2.so)" = "1011
1010" ]

# Joining later: PROGRAM.link, another program, the compiled code beside it.
printf '#include <dlfcn.h>\n#include <stdio.h>\nint main(int argc, char **argv) { for (int i = 1; i < argc; i++) puts(dlopen(argv[i], RTLD_NOW) ? "yes" : dlerror()); return 0; }\n' >opens.c
lind_compile -rdynamic opens.c -o opens.cwasm
[ -f opens.link ]
[ -f opens.cwasm ]
opens() { lind_run --root "$PWD" "$@"; }
[ "$(opens opens.cwasm ./libld.so)" = './libld.so: not part of this program: `lind-link opens.cwasm ./libld.so` joins it' ]
lind-link opens.cwasm libld.so -o more.wasm
[ "$(opens more.wasm ./libld.so libld.so.1)" = "yes
yes" ]
lind-link more.wasm libwhole.so
[ "$(opens more.wasm ./libld.so ./libwhole.so)" = "yes
yes" ]
lind-link opens.cwasm libwhole.so
[ "$(opens opens.cwasm ./libwhole.so)" = yes ]
# The file that is named is written, not another program's whose name differs by the ending.
lind-cc -rdynamic opens.c -o both
cp both both.wasm
lind-link both libld.so
fails cmp -s both both.wasm
lind-ldd both | grep -q libld.so.1
# Of a thin archive, whose members are files of their own, the members are kept.
printf 'extern int main(int, char **);\nint (*const first)(int, char **) = main;\n' >thin.c
lind-cc -c opens.c thin.c
$TRIPLE-ar rcsT libthin.a opens.o thin.o
lind-cc -rdynamic -Wl,-u,first libthin.a -o thin.wasm
rm libthin.a opens.o thin.o
lind-link thin.wasm libld.so
[ "$(opens thin.wasm ./libld.so)" = yes ]
# A name without a slash: that of a library in the program, or of a file in LD_LIBRARY_PATH or /lib.
mkdir -p some lib
cp libld.so some/libfile.so
cp libld.so lib/libfile2.so
[ "$(opens -e LD_LIBRARY_PATH=/none:/some more.wasm libfile.so libfile2.so)" = "yes
yes" ]
[ "$(opens more.wasm libfile.so)" = 'libfile.so: cannot open shared object file: No such file or directory' ]
# Libraries of one name, and one whose name is the first's and a number.
for number in 1 2 3; do
	echo "int here(void) { return $number; }" >here.c
	lind-cc -shared here.c -Wl,-soname,libhere.so -o libhere$number.so
done
printf '#include <dlfcn.h>\n#include <stdio.h>\nint main(int argc, char **argv) { for (int i = 1; i < argc; i++) printf("%%d ", ((int (*)(void))dlsym(dlopen(argv[i], RTLD_NOW), "here"))()); return 0; }\n' >calls.c
lind-cc -shared here.c -Wl,-soname,libhere.so.2 -o libhere3.so
lind-cc calls.c --dlopen libhere1.so --dlopen libhere2.so --dlopen libhere3.so -o calls.wasm
[ "$(opens calls.wasm ./libhere1.so ./libhere2.so ./libhere3.so)" = "1 2 3 " ]
# A library that was made again is another one, until it is joined again.
lind-cc -shared -DNEW one.c -o libwhole.so
opens opens.cwasm ./libwhole.so | grep -q 'has another version of libwhole.so'
lind-link opens.cwasm libwhole.so
[ "$(opens opens.cwasm ./libwhole.so)" = yes ]
[ "$(lind-ldd opens.wasm | wc -l)" = 1 ]
fails lind-link static.wasm libld.so 2>err
grep -q 'link the program with -rdynamic' err
fails lind-link opens.wasm one.c 2>err
grep -q 'not a shared library for cages' err
fails lind-link opens.wasm 2>err
grep -q 'give a program, and a library' err
# -Wl,--no-export-dynamic takes -rdynamic back.
lind-cc -Wl,--no-export-dynamic -rdynamic opens.c -o closed.wasm
[ ! -e closed.link ]
# A program that opens none keeps nothing, and one without a table says what to do.
lind-cc -rdynamic one.c two.c main.c -o plain.wasm
[ ! -e plain.link ]
lind-cc opens.c -o notable.wasm
opens notable.wasm ./libld.so | grep -q 'link it with -rdynamic'

# Damaged files are refused by name.
for at in 20 70 90 200 400; do
	head -c $at libld.so >cut.so
	fails lind-cc main.c cut.so -o x.wasm 2>err
	[ "$(wc -l <err)" -lt 4 ]
	fails grep -q Traceback err
done
python3 -I "$CASES/damaged.py" "$CASES/../../../scripts" libld.so opens.link
head -c 300 opens.link >cut.link
cp opens.wasm cut.wasm
fails lind-link cut.wasm libld.so 2>err
grep -q 'cut.link' err
fails grep -q Traceback err
printf '\0asm\1\0\0\0\0\377\377\377\377\377\377\377\377\377\377\1' >cut.wasm
fails lind-ldd cut.wasm 2>err
grep -q 'cut.wasm: the module is damaged' err
printf '!<arch>\n/\302\262             0           0     0     644     2         `\nab' >cut.a
fails lind-cc -shared -L. -Wl,--whole-archive cut.a -o x.so 2>err
grep -q 'cut.a.*: not an object for a cage' err
# A name that would be a line of its own.
fails lind-cc -shared one.c -Wl,-soname,"a
needed b" -o x.so 2>err
grep -q 'not a name for a library' err
# Names with a command for terminals, in no encoding, too long, and just not too long.
for name in "$(printf '\302\2332J')" "$(printf '\377')" "$(printf '%0128dö' 0 | sed 's/0/ö/g')"; do
	fails lind-cc -shared one.c -Wl,-soname,"$name" -o x.so 2>err
	grep -q 'not a name for a library' err
done
lind-cc -shared one.c two.c -Wl,-soname,"$(printf '%0255d' 0)" -o long.so
lind-cc main.c long.so -o long.wasm
runs long.wasm 2
fails lind-cc -shared one.c -L. -lnothere -o x.so 2>err
grep -q 'cannot find -lnothere' err
# A library's own main, and a name that it shares with the program, are its own.
printf 'int main(void) { return 7; }\nint two(void) { return main(); }\n' >own.c
lind-cc -shared own.c -o libown.so
lind-cc main.c libown.so -o own.wasm
runs own.wasm 7

# CMake.
cat >CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.20)
project(libraries C)
add_library(one SHARED one.c)
add_library(two SHARED two.c)
target_link_libraries(two one)
set_target_properties(one PROPERTIES VERSION 1.2.3 SOVERSION 1)
add_library(plugin MODULE own.c)
add_executable(program main.c)
target_link_libraries(program two)
install(TARGETS one two)
END
cmake -G Ninja -B made -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_C_COMPILER=$TRIPLE-gcc -DCMAKE_AR="$(command -v $TRIPLE-ar)" \
	-DCMAKE_RANLIB="$(command -v $TRIPLE-ranlib)" -DCMAKE_BUILD_TYPE=Release -DCMAKE_SKIP_RPATH=ON
cmake --build made
cp made/program made.wasm
runs made.wasm 2
[ -L made/libone.so.1 ]
lind-ldd made/libtwo.so | grep -q libone.so.1
[ -f made/libplugin.so ]
