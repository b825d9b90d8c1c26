#!/bin/sh
# Installs Lind from a built source tree, or removes it again.
#
#     scripts/install.sh install|uninstall DESTDIR PREFIX        DESTDIR may be empty
#
# PREFIX/bin has the commands, PREFIX/lib/lind all else. lind-boot and the compiler driver find it
# relative to their own files, so that PREFIX may be moved.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
what=$1 bin=$2$3/bin lib=$2$3/lib/lind

die() { echo "install: $*" >&2; exit 1; }

case $3 in /*) ;; *) die "PREFIX is an absolute path, not '$3'" ;; esac

# The driver goes by these names; the rest of scripts/bin is found beside it.
commands="lind_compile lind-cc lind-c++ lind-clang lind-clang++ lind-link lind-ldd"

remove() {
	for name in $commands; do
		case $(readlink "$bin/$name" || true) in ../lib/lind/*) rm -f "$bin/$name" ;; esac
	done
	rm -f "$bin/lind-boot" "$bin/lind-oci" "$bin/lind-sh"
	rm -rf "$lib"
}

# Everybody may read it and only its owner change it, whatever its mode in the source tree is.
copy() {
	mkdir -p "$2"
	(cd "$1" && tar -cf - --exclude=__pycache__ --owner=0 --group=0 --mode=u=rwX,go=rX .) | (cd "$2" && tar -xf - --no-same-owner -p)
}

image() {
	mkdir -p "$lib/image"
	# Without the files that tests and programs of the user have put there, and the copies of grates.
	for entry in "$top"/lindfs/*; do
		name=$(basename "$entry")
		case $name in conformance | grates) continue ;; esac
		if [ -d "$entry" ]; then copy "$entry" "$lib/image/$name"; fi
	done
	chmod 1777 "$lib/image/tmp"
}

# The code of grates and tools, compiled. It is kept in build/code, so that the next installation
# compiles only what has changed. A failure to compile is printed here, and again when the program
# is run.
code() {
	"$top/target/release/lind-boot" warm --deliver "$top/build/code" --seal "$bin/lind-boot" "$lib/grates" "$lib/image" || :
	# sudo leaves it to the owner of the tree.
	[ "$(id -u)" != 0 ] || chown -R --reference="$top/build" "$top/build/code"
	mkdir -p "$lib/code"
	install -m 644 "$top/build/code/list" "$lib/code/list"
	while read -r source _; do install -m 644 "$top/build/code/$source.code" "$lib/code/$source.code"; done <"$lib/code/list"
}

case $what in
uninstall)
	remove
	;;
install)
	for built in target/release/lind-boot target/release/lind-oci target/release/lind-passes build/sysroot/lib/libc.a build/grates/bracket_grate.wasm; do
		[ -e "$top/$built" ] || die "$built is not built: run \`make\`"
	done
	umask 022
	remove
	mkdir -p "$bin" "$lib/bin"
	install -m 755 -s "$top/target/release/lind-boot" "$bin/lind-boot"
	install -m 755 -s "$top/target/release/lind-oci" "$bin/lind-oci"
	install -m 755 -s "$top/target/release/lind-passes" "$lib/bin/lind-passes"
	ln -s ../../../bin/lind-boot "$lib/bin/lind-boot"
	ln -s lind-boot "$bin/lind-sh"
	copy "$top/scripts/driver" "$lib/scripts/driver"
	# Each start would compile it again for a user who may not write here. The bytecode is not compared
	# with the source's time, which a copy of PREFIX may change.
	/usr/bin/python3 -ISm compileall -q --invalidation-mode unchecked-hash -s "$lib" -p "$3/lib/lind" "$lib/scripts/driver"
	copy "$top/scripts/bin" "$lib/scripts/bin"
	rm -f "$lib/scripts/bin/lind_run" "$lib/scripts/bin/lind-wasm" "$lib/scripts/bin/cargo-lind" "$lib/scripts/bin/lind-sh"
	install -m 755 "$top/scripts/lind_compile" "$lib/scripts/lind_compile"
	for name in $commands; do ln -sf "../lib/lind/scripts/bin/$name" "$bin/$name"; done
	copy "$top/build/sysroot" "$lib/sysroot"
	copy "$top/grates/sdk/c/include" "$lib/include"
	copy "$top/build/grates" "$lib/grates"
	mkdir -p "$top/lindfs/tmp"
	image
	# Compiled code beside a module is only of use to the user who compiled it.
	find "$lib/grates" "$lib/image" -name '*.cwasm' -exec sh -c 'for f; do [ ! -f "${f%.cwasm}.wasm" ] || rm "$f"; done' sh {} +
	code
	echo "installed $bin/lind-boot and $lib; \`lind-boot doctor\` looks at it"
	;;
*) die "unknown: $what" ;;
esac
