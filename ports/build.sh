#!/bin/sh
# Builds programs from Debian's sources for a cage and installs them into a root.
#
#     ports/build.sh [--root DIR] [--test] [--native] [--fork=never|always] [NAME]...    no NAME: all
#
# --test runs NAME's own tests, on Linux and in a cage. --native builds for Linux only; --fork=... links a copy of what was built for a
# cage with that option. Neither installs anything: tests/benchmarks/ports.py compares what they make.
# A port is ports/NAME/recipe, whose beginning says what it may set; ports/NAME/*.patch is applied to the source. Work is in
# build/ports/NAME. What is built stays until the source, the recipe, a patch or the C library's headers change; a new
# libc.a, driver or pass only links again.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/.." && pwd)
export TRIPLE=wasm32-unknown-linux-musl
export PATH="$top/scripts/bin:$PATH"
export JOBS="${JOBS:-2}"
# Configure scripts and makefiles of ports shall not find what the user has set for others.
unset MAKEFLAGS MFLAGS MAKELEVEL SYSROOT CPPFLAGS LIBS C_INCLUDE_PATH LIBRARY_PATH PKG_CONFIG_PATH
root=$top/lindfs
test=
only=cage

die() { echo "ports: $*" >&2; exit 1; }

while [ $# -gt 0 ]; do
	case $1 in
	--root) [ $# -gt 1 ] || die "--root needs a directory"; root=$2; shift 2 ;;
	--test) test=1; shift ;;
	--native) only=native; shift ;;
	--fork=never | --fork=always) only=${1#--fork=}; shift ;;
	-*) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2 ;;
	*) break ;;
	esac
done
[ $# -gt 0 ] || set -- $(cd "$here" && ls -d */recipe | sed 's,/recipe,,')
[ -x "$top/target/release/lind-boot" ] && [ -f "$top/build/sysroot/lib/libc.a" ] || die "the runtime is not built: run \`make\`"
mkdir -p "$root"
root=$(cd "$root" && pwd)

# Runs a step with its output in a log, and says how far it is: what the log says last, every ten seconds. The step is in front,
# so that ^C ends it.
step() {
	what=$1 log=$work/$1.log began=$(date +%s)
	shift
	printf '%s: %s\n' "$title" "$what"
	: >"$log"
	while sleep 10 >/dev/null 2>&1; do
		printf '%s: %s, %d s: %s\n' "$title" "$what" $(($(date +%s) - began)) "$(tail -n 1 "$log" | cut -c 1-90)"
	done &
	watcher=$!
	trap 'kill $watcher 2>/dev/null' EXIT
	trap 'exit 130' INT TERM
	set +e
	(set -eu; cd "$tree"; "$@") >"$log" 2>&1 </dev/null
	status=$?
	set -e
	kill $watcher
	trap - EXIT INT TERM
	if [ $status != 0 ]; then
		tail -n 30 "$log" | sed 's/^/    /' >&2
		die "$title: $what failed; all of it is in $log"
	fi
	printf '%s: %s done in %d s\n' "$title" "$what" $(($(date +%s) - began))
}

# What decides whether a tree is made anew, and what whether its programs are linked again.
source_key() {
	{
		echo "$sha256 $side"
		cat "$here/$name/recipe"
		find "$here/$name" -name '*.patch' | sort | xargs -r cat
		for need in $needs; do cat "$top/build/ports/$need/$side/source-key"; done
		case $side in
		cage) cat "$here/config.site"; find "$top/build/sysroot/include" -name c++ -prune -o -type f -print | sort | xargs cat ;;
		native) clang-22 --version ;;
		esac
	} | sha256sum
}

link_key() {
	case $side in
	cage | never | always) cat "$top/build/sysroot/lib/"*.[ao] "$top/target/release/lind-passes" "$top"/scripts/driver/*.py | sha256sum ;;
	native) echo native ;;
	esac
}

unpack() {
	rm -rf "$tree"
	mkdir -p "$tree"
	tar -xf "$top/build/downloads/$tarball" -C "$tree" --strip-components=1
	for patch in "$here/$name"/*.patch; do
		[ ! -f "$patch" ] || patch -p1 <"$patch"
	done
}

# Sets what the functions of a recipe find in the environment.
choose() {
	side=$1
	work=$top/build/ports/$name/$side
	tree=$work/source
	title=$name
	if [ "$side" != native ]; then
		export CC=lind-cc CXX=lind-c++ AR=$TRIPLE-ar RANLIB=$TRIPLE-ranlib NM=$TRIPLE-nm STRIP=true LD=$TRIPLE-ld
		export CFLAGS="-O2 -w" LDFLAGS="-Wl,--strip-debug" HOST="--host=$TRIPLE --build=$(uname -m)-linux-gnu" CONFIG_SITE="$here/config.site"
		[ "$side" = cage ] || title="$name (--fork=$side)"
	else
		title="$name (native)"
		export CC=clang-22 CXX=clang++-22 AR=ar RANLIB=ranlib NM=nm STRIP=true LD=ld
		export CFLAGS="-O2 -w" LDFLAGS="" HOST="" CONFIG_SITE=/dev/null
	fi
	export CC_FOR_BUILD=cc
}

# Where a port's `stage` puts libraries for other ports: include/ and lib/.
stage_of() { echo "$top/build/ports/$1/$side/stage"; }

# In a recipe: puts FILE of the tree at a path of the root; a path that ends in / is a directory.
put() {
	file=$1 to=$2
	case $to in */) to=$to$(basename "$file") ;; esac
	mkdir -p "$root/$(dirname "$to")"
	# A running program's file stays as it is.
	cp -f "$tree/$file" "$root/$to.new"
	chmod 755 "$root/$to.new"
	mv -f "$root/$to.new" "$root/$to"
}

# In a recipe: `link TARGET PATH` makes a symbolic link in the root.
link() { mkdir -p "$root/$(dirname "$2")"; ln -sfn "$1" "$root/$2"; }

load() {
	name=$1
	[ -f "$here/$name/recipe" ] || die "no port $name; there are: $(cd "$here" && ls -d */recipe | sed 's,/recipe,,' | tr '\n' ' ')"
	needs='' programs='' tools='' test_tools='' test_needs=''
	configure() { :; }
	compile() { make -j"$JOBS"; }
	install() { :; }
	stage() { :; }
	. "$here/$name/recipe"
}

# Installs what is missing of Debian's packages that a port says it needs, and says so. $1: what for; then COMMAND[:PACKAGE]...
ask_for() {
	why=$1 missing='' packages=''
	shift
	for tool in "$@"; do
		command -v "${tool%%:*}" >/dev/null || { missing="$missing ${tool%%:*}" packages="$packages ${tool##*:}"; }
	done
	[ -n "$missing" ] || return 0
	echo "$name: installs$packages, which it needs $why"
	# shellcheck disable=SC2086
	"$top/scripts/setup.sh" $packages || die "$name needs$missing $why"
}

# Builds port $1 on side $2, what it needs first.
build() {
	load "$1"
	case $2 in never | always) relink "$1" "$2"; return ;; esac
	for need in $needs; do attempt build "$need" "$2"; done
	choose "$2"
	ask_for "to build" $tools
	mkdir -p "$work"
	key=$(source_key)
	if [ "$(cat "$work/source-key" 2>/dev/null)" != "$key" ]; then
		"$top/src/sysroot/fetch.sh" "$package" "$tarball" "$sha256" || die "$name: no source"
		rm -f "$work/source-key" "$work/link-key"
		tree=$work step unpack unpack_here
		step configure configure
		echo "$key" >"$work/source-key"
	fi
	links=$(link_key)
	if [ "$(cat "$work/link-key" 2>/dev/null)" != "$links" ]; then
		(cd "$tree" && rm -f $programs)
		step compile compile
		for program in $programs; do [ -f "$tree/$program" ] || die "$title: no $program after compiling; see $work/compile.log"; done
		(cd "$tree" && stage "$(stage_of "$name")") >"$work/stage.log" 2>&1 || die "$title: see $work/stage.log"
		echo "$links" >"$work/link-key"
	fi
	if [ "$side" = cage ]; then
		install
		echo "$name: installed into $root"
	fi
}

# A copy of what was built for a cage, linked with --fork=$2.
relink() {
	attempt build "$1" cage
	choose "$2"
	links="$(cat "$top/build/ports/$name/cage/source-key") $(link_key)"
	[ "$(cat "$work/link-key" 2>/dev/null)" != "$links" ] || return 0
	rm -rf "$work"
	mkdir -p "$work/bin"
	cp -a "$top/build/ports/$name/cage/source" "$tree"
	printf '#!/bin/sh\nexec "%s" --fork=%s "$@"\n' "$top/scripts/bin/lind-cc" "$side" >"$work/bin/lind-cc"
	chmod +x "$work/bin/lind-cc"
	(cd "$tree" && rm -f $programs)
	(PATH=$work/bin:$PATH && step compile compile)
	echo "$links" >"$work/link-key"
}

unpack_here() { tree=$work/source; unpack; cd "$tree"; }

# What a subshell ends with. Not `(...) || exit`: then nothing in it would end at a command that fails.
attempt() {
	set +e
	(set -e; "$@")
	status=$?
	set -e
	[ $status = 0 ] || exit $status
}

test_port() {
	load "$1"
	# What the tests run beside it.
	for need in $test_needs; do attempt build "$need" cage; done
	build "$1" native
	ask_for "for its tests" $test_tools
	"$here/test.sh" "$root" "$1"
}

for port in "$@"; do
	attempt build "$port" "$only"
	[ -z "$test" ] || attempt test_port "$port"
done
