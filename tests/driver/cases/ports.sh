# ports/build.sh: what ports need comes first, what fails keeps nothing else from being built, what
# is unchanged stays.
top=${FETCH%/src/sysroot/fetch.sh}
mkdir -p ports build/downloads source-1
cp "$top/ports/build.sh" "$top/ports/port.sh" "$top/ports/config.site" ports/
ln -s "$top/build/sysroot" build/sysroot
for folder in target scripts; do ln -s "$top/$folder" "$folder"; done
mkdir -p src/sysroot
ln -s "$top/src/sysroot/fetch.sh" src/sysroot/
printf 'int twice(int x) { return 2 * x; }\n' >source-1/twice.c
printf 'int twice(int);\nint main(void) { return twice(21); }\n' >source-1/main.c
printf 'all: main.o\nmain.o: main.c\n\t$(CC) $(CFLAGS) -c main.c\n' >source-1/Makefile
tar -czf build/downloads/source_1.tar.gz source-1

# port NAME NEEDS: the rest of the recipe is standard input.
port() {
	mkdir -p "ports/$1"
	{
		echo "package=source tarball=source_1.tar.gz sha256=$(sha256sum build/downloads/source_1.tar.gz | cut -d' ' -f1) needs='$2'"
		cat
	} >"ports/$1/recipe"
}
port base '' <<-'END'
	compile() { $CC $CFLAGS -c twice.c && $AR rcs libtwice.a twice.o; }
	stage() { mkdir -p "$1/lib" && cp libtwice.a "$1/lib"; }
END
port good base <<-'END'
	programs=good
	compile() { make && $CC main.o -L"$(stage_of base)/lib" -ltwice -o good; }
	install() { put good bin/; }
END
port bad '' <<-'END'
	compile() { echo 'why it failed'; false; }
END
port after bad <<-'END'
	compile() { touch "$tree/../was-tried"; }
END
set -x
# Busybox alone leaves names to others: else it would depend on the order of building which program
# a name means.
[ "$(cd "$top/ports" && grep -l '\[ -e "\$root/bin' */recipe)" = busybox/recipe ]
if JOBS=2 ports/build.sh --root root >log; then exit 1; fi
[ -x root/bin/good ]
grep -q '^\[[12]/4\] base: built' log && grep -q 'good: built, installed' log
grep -q 'why it failed' log && grep -q 'bad: compile failed; all of it is in .*bad/cage/compile.log' log
if [ -e build/ports/after/cage/was-tried ]; then exit 1; fi
if ports/build.sh --root root after >log 2>err; then exit 1; fi
grep -q '^ports: failed, or not built for lack of one that failed: .*after' err && grep -q ' bad' err
status=0
lind_run --root root good || status=$?
[ $status = 42 ]

ports/build.sh --root root good >log
grep -q 'base: unchanged' log && grep -q 'good: unchanged, installed' log
# A changed recipe builds its port again, and the ports that need it.
echo '# changed' >>ports/base/recipe
ports/build.sh --root root good >log
grep -q 'base: built' log && grep -q 'good: built' log

# Another language's compiler is built before the first port that wants it, once, and not for Linux.
# Without it, the others are built.
printf '#!/bin/sh\necho "a compiler for %s"; ! [ -e broken ] && echo made >>made\n' "$top" >src/sysroot/other.sh
chmod +x src/sysroot/other.sh
for name in wants wants-too; do
	port $name '' <<-'END'
		[ "$side" = native ] || toolchain=other
		compile() { [ "$side" = native ] || [ -e "$top/made" ]; }
	END
done
touch broken
if ports/build.sh --root root good wants >log 2>err; then exit 1; fi
grep -q 'good: unchanged, installed' log && grep -q 'wants: compile failed' log && grep -q 'other for cages did not build' err
rm broken
ports/build.sh --native wants >log
[ ! -e made ]
ports/build.sh --root root wants wants-too >log
grep -q 'a compiler for' log && [ "$(cat made)" = made ]

if ports/build.sh nothing 2>err; then exit 1; fi
grep -q 'no port nothing; there are: after bad base good wants' err
[ -z "$(ls -d build/ports/plan.* 2>/dev/null)" ]
