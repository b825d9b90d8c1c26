#!/bin/sh
# Builds one port for build.sh, or runs its tests: port.sh PLAN ROOT NAME
# cage|native|never|always|test
#
# PLAN is build.sh's directory, where a step is written down while it runs. A build is kept until
# the source, the recipe, a patch or the C library's headers change (source-key); a new libc.a,
# driver or pass only links again (link-key).
set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/.." && pwd)
plan=$1 root=$2
shift 2
export TRIPLE=wasm32-unknown-linux-musl
export PATH="$top/scripts/bin:$PATH"
# Of what the user or build.sh has set, configure scripts and makefiles of ports shall find the jobs
# that they may start alone.
jobserver=$(echo "${MAKEFLAGS:-}" | grep -o -e '--jobserver-auth=[^ ]*' || true)
unset MAKEFLAGS MFLAGS MAKELEVEL SYSROOT CPPFLAGS LIBS C_INCLUDE_PATH LIBRARY_PATH PKG_CONFIG_PATH
export MAKEFLAGS="-j$JOBS $jobserver"

die() { echo "$*" >&2; exit 1; }

# Runs a step with its output in a log.
step() {
	what=$1 log=$work/$1.log
	shift
	echo "$title: $what" >"$plan/$name.$side.step"
	set +e
	(set -eu; cd "$tree"; "$@") >"$log" 2>&1 </dev/null
	status=$?
	set -e
	rm -f "$plan/$name.$side.step"
	if [ $status != 0 ]; then
		tail -n 20 "$log" | sed 's/^/    /' >&2
		die "$title: $what failed; all of it is in $log"
	fi
}

# The keys that decide whether a tree is built again, and whether its programs are linked again.
source_key() {
	{
		echo "$sha256 $side"
		cat "$here/$name/recipe"
		find "$here/$name" -type f ! -name recipe ! -name 'test*' ! -name known ! -name cases ! -name README.md ! -name suite ! -path "$here/$name/packages/*" | sort | xargs -r cat
		for need in $needs; do cat "$top/build/ports/$need/$side/source-key"; done
		case $side in
		cage) cat "$here/config.site"; find "$top/build/sysroot/include" -name c++ -prune -o -type f -print | sort | xargs cat ;;
		native) clang-22 --version ;;
		esac
	} | sha256sum
}

link_key() {
	case $side in
	cage | never | always) cat "$top/build/sysroot/lib/"*.[ao] "$top/target/release/lind-passes" "$top"/scripts/driver/*.py "$top"/scripts/driver/libraries/*.py | sha256sum ;;
	native) echo native ;;
	esac
}

unpack() {
	rm -rf "$tree"
	mkdir -p "$tree"
	[ -z "$tarball" ] || tar -xf "$top/build/downloads/$tarball" -C "$tree" --strip-components=1
	for patch in "$here/$name"/*.patch; do
		[ ! -f "$patch" ] || patch -p1 -d "$tree" <"$patch"
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
		export CFLAGS="-O2 -w" LDFLAGS="-Wl,--no-export-dynamic -Wl,--strip-debug" HOST="--host=$TRIPLE --build=$(uname -m)-linux-gnu" CONFIG_SITE="$here/config.site"
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

# In a recipe: fetches the wheels that the port's wheels.txt pins, by the pip in the Python's source
# at $1.
fetch_wheels() {
	PYTHONPATH=$(echo "$1"/Lib/ensurepip/_bundled/pip-*.whl) python3.11 -m pip download -q --disable-pip-version-check --no-deps \
		--only-binary :all: --require-hashes --find-links "$top/build/downloads" -d wheels -r "$here/$name/wheels.txt"
}

# In a recipe: unpacks them into a directory of the root, in the place of other versions.
put_wheels() {
	for wheel in "$tree"/wheels/*.whl; do
		package=$(basename "$wheel")
		rm -rf "$1/${package%%-*}"-*.dist-info
		python3.11 -m zipfile -e "$wheel" "$1"
	done
}

load() {
	name=$1
	optimise='' hot='' tarball='' sha256='' needs='' host_needs='' programs='' tools='' test_tools='' test_needs=''
	configure() { :; }
	compile() { make; }
	install() { :; }
	stage() { :; }
	. "$here/$name/recipe"
}

# Installs what is missing of Debian's packages that a port says it needs, and says so. $1: what
# for; then COMMAND[:PACKAGE]...
ask_for() {
	why=$1 missing='' packages=''
	shift
	for tool in "$@"; do
		command -v "${tool%%:*}" >/dev/null || { missing="$missing ${tool%%:*}" packages="$packages ${tool##*:}"; }
	done
	[ -n "$missing" ] || return 0
	echo "$name: installs$packages, which it needs $why"
	# One at a time, which apt wants.
	# shellcheck disable=SC2086
	flock "$top/build/ports/apt.lock" "$top/scripts/setup.sh" $packages || die "$name needs$missing $why"
}

# Says how it went: one line for each port.
finish() {
	: >"$plan/$name.$side.done"
	set -- "$1" "$(find "$plan" -maxdepth 1 -name '*.done' | wc -l)" "$(grep -c . "$plan/targets")"
	printf '[%d/%d] %s: %s\n' "$2" "$3" "$title" "$1"
}

# Compiles with further options, which a recipe need not know of.
compile_with() {
	mkdir -p "$work/bin"
	printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$top/scripts/bin/lind-cc" "$1" >"$work/bin/lind-cc"
	chmod +x "$work/bin/lind-cc"
	(PATH=$work/bin:$PATH && step compile compile)
}

# For a cage, a recipe that says how to optimise, or what is hot, gets a profile first: of programs
# that count what they do, by `train`.
compile_well() {
	if [ -z "$optimise$hot" ] || [ "$side" != cage ]; then
		step compile compile
		return
	fi
	[ -f "$work/profile" ] || make_profile
	compile_with "$optimise -fprofile-use=$work/profile"
}

# If the recipe says which objects are hot, the others are compiled once, without counting.
make_profile() {
	counting=$work/counting
	rm -rf "$counting"
	[ -z "$hot" ] || step compile compile
	cp -a "$tree" "$counting"
	(cd "$tree" && rm -f $hot $programs)
	(
		title="$title (counting)" tree=$counting
		cd "$tree" && rm -f $hot $programs
		compile_with -fprofile-generate
		export LLVM_PROFILE_FILE="$counting/counts/%m.profraw" LIND_VOLUME="$counting"
		step train train
	)
	"llvm-profdata${LLVM_SUFFIX--22}" merge -o "$work/profile" "$counting"/counts/*.profraw
	rm -rf "$counting"
}

# Builds port $1 on side $2. The ports that it needs are built already.
build() {
	began=$(date +%s) did=unchanged
	choose "$2"
	ask_for "to build" $tools
	mkdir -p "$work"
	key=$(source_key)
	if [ "$(cat "$work/source-key" 2>/dev/null)" != "$key" ]; then
		[ -z "$tarball" ] || "$top/src/sysroot/fetch.sh" "$package" "$tarball" "$sha256" || die "$name: no source"
		rm -f "$work/source-key" "$work/link-key" "$work/profile"
		tree=$work step unpack unpack_here
		step configure configure
		echo "$key" >"$work/source-key"
		did=built
	fi
	links=$(link_key)
	if [ "$(cat "$work/link-key" 2>/dev/null)" != "$links" ]; then
		[ $did = built ] || did="linked again"
		(cd "$tree" && rm -f $programs)
		compile_well
		for program in $programs; do [ -f "$tree/$program" ] || die "$title: no $program after compiling; see $work/compile.log"; done
		step stage stage "$(stage_of "$name")"
		echo "$links" >"$work/link-key"
	fi
	# One at a time: a port may look at what others have put there. Its variables are its own.
	[ "$side" != cage ] || { exec 9>"$top/build/ports/install.lock"; flock 9; (set -eu; install); exec 9>&-; did="$did, installed"; }
	finish "$did, $(($(date +%s) - began)) s"
}

# A copy of what was built for a cage, linked with --fork=$2.
relink() {
	choose "$2"
	links="$(cat "$top/build/ports/$name/cage/source-key") $(link_key)"
	if [ "$(cat "$work/link-key" 2>/dev/null)" != "$links" ]; then
		rm -rf "$work"
		mkdir -p "$work"
		cp -a "$top/build/ports/$name/cage/source" "$tree"
		(cd "$tree" && rm -f $programs)
		compile_with "--fork=$side"
		echo "$links" >"$work/link-key"
	fi
	finish "linked"
}

unpack_here() { tree=$work/source; unpack; cd "$tree"; }

# In braces, so that an edit of this file does not reach a run of it.
{
side=$2
load "$1"
case $2 in
cage | native) build "$1" "$2" ;;
never | always) relink "$1" "$2" ;;
test)
	ask_for "for its tests" $test_tools
	exec "$here/test.sh" "$root" "$1"
	;;
esac
exit
}
