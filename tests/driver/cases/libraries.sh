# Shared libraries: what programs do with them on Linux they do in a cage.
#
# A program is ../libraries/NAME.main.c, its libraries NAME.LIBRARY.c. Lines at the top of a file
# say which libraries it needs, which it opens, and which other files are in the same library.
from=$(dirname "$CASES")/libraries
says() { sed -n "s,^// $2 *,,p" "$from/$1"; }
source_of() { basename "$from/$1".c*; }
compiler() { case $1 in *.cc) echo "$cxx" ;; *) echo "$cc" ;; esac; }

library() {
	file=$(source_of "$name.$1") needs=
	for needed in $(says "$file" needs); do library "$needed"; done
	file=$(source_of "$name.$1") needs=
	for needed in $(says "$file" needs); do needs="$needs -l$needed"; done
	set -- "$1" "$from/$file"
	for other in $(says "$file" also); do set -- "$@" "$from/$(source_of "$name.$other")"; done
	library=$1
	shift
	# shellcheck disable=SC2086
	$(compiler "$file") -O1 -w -fPIC -shared -Wl,-soname,"lib$library.so" "$@" -L. $needs -Wl,-rpath,"$PWD" -o "lib$library.so"
}

build() {
	file=$(source_of "$name.main") libraries=
	for each in $(says "$file" needs) $(says "$file" opens); do library "$each"; done
	file=$(source_of "$name.main")
	for needed in $(says "$file" needs); do libraries="$libraries -l$needed"; done
	# shellcheck disable=SC2086
	$(compiler "$file") -O1 -w -rdynamic "$from/$file" -L. $libraries -Wl,-rpath,"$PWD" -ldl -lpthread -o main.wasm
	opened=
	for each in $(says "$file" opens); do opened="$opened lib$each.so"; done
}

# Two libraries of one name, by paths.
build_same() {
	for each in one two; do
		mkdir -p $each
		$cc -O1 -fPIC -shared -Wl,-soname,libsame.so "$from/same.$each.c" -o $each/libsame.so
	done
	opened="one/libsame.so two/libsame.so"
}

compare() {
	name=$1
	mkdir -p "native/$name" "cage/$name"
	(
		cd "native/$name"
		cc=clang-22 cxx=clang++-22
		build
		[ "$name" != same ] || build_same
		./main.wasm >../../expected && echo ended >>../../expected
	)
	(
		cd "cage/$name"
		cc=lind-cc cxx=lind-c++
		build
		[ "$name" != same ] || build_same
		# shellcheck disable=SC2086
		[ -z "$opened" ] || lind-link main.wasm $opened
		lind_run --root "$PWD" main.wasm >../../said && echo ended >>../../said
	)
	echo "== $name"
	# In a function that may fail, the shell goes on behind a command that has.
	grep -qx ended expected && diff -u expected said
}

for main in "$from"/${LIBRARIES:-*}.main.c*; do
	compare "$(basename "${main%.main.c*}")" || failed="${failed-} $(basename "${main%.main.c*}")"
done
[ -z "${failed-}" ] || { echo "failed:$failed"; exit 1; }
