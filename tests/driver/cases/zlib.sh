# zlib, built by its own configure, passes its own test: as an archive, and as a shared library.
top=$(dirname "$(dirname "$(dirname "$CASES")")")
[ -x "$top/target/release/lind-boot" ] || { echo "lind-boot is not built"; exit 77; }

set -x
"$FETCH" zlib zlib_1.2.13.dfsg.orig.tar.bz2 71feb7947e3c00ef125f83b79a4e529bde31171e5babe48b391f06758d1ab0a1
tar -xf "$top/build/downloads/zlib_1.2.13.dfsg.orig.tar.bz2" --strip-components=1
CHOST=$TRIPLE CC=lind-cc AR=$TRIPLE-ar RANLIB=$TRIPLE-ranlib ./configure --static
make -j2 static

cp example minigzip "$CAGE"
run() { lind_run --root "$CAGE" "$@"; }
# The commands of `make test`.
echo hello world | run /minigzip | run /minigzip -d | grep '^hello world$'
run /example foo.gz | tee example.log
grep 'gzread(): hello, hello!' example.log
grep 'large_inflate(): OK' example.log

# Larger input, against the host's gzip.
seq 1 200000 >numbers
run /minigzip <numbers >numbers.gz
gzip -dc numbers.gz | cmp - numbers
gzip -9c numbers | run /minigzip -d | cmp - numbers

# The shared library, with its version script, which the test's other program needs.
make distclean
CHOST=$TRIPLE CC=lind-cc AR=$TRIPLE-ar RANLIB=$TRIPLE-ranlib ./configure
make -j2 libz.so.1.2.13 examplesh
[ "$(readlink libz.so)" = libz.so.1.2.13 ]
lind-ldd examplesh | grep -q '^	libz.so.1 .* needed$'
cp examplesh "$CAGE"
run /examplesh foo.gz | cmp - example.log
# Names that the script calls local are not found.
printf '#include <dlfcn.h>\nint main(void) { void *z = dlopen("libz.so.1", 2); return !dlsym(z, "inflate") + 2 * !!dlsym(z, "inflate_fast"); }\n' >looks.c
lind-cc looks.c --dlopen libz.so -o "$CAGE/looks"
run /looks
