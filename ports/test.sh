#!/bin/bash
# Runs the tests of a port on Linux and in a cage, and compares the results.
# Usage: ports/test.sh ROOT NAME [CASE]...
#
# ports/NAME/test says what a case is: `prepare` fills $arena, which is the root of the cage and
# holds the port's program in bin; `cases` prints names; `run CASE` succeeds, fails, or returns 77
# if there is nothing to test. Both use `at DIR COMMAND...`, which runs a command of the arena's bin
# in a directory of the arena; `stop JOB` ends one in the background. A port whose tests are run by
# a program of their own has, for `run`, `run_all CASE...`, which prints lines `CASE verdict`;
# fill_tree and check_tree do so for `make check`. A case that passes on Linux must pass in a cage,
# unless ports/NAME/known gives the reason: `CASE reason`. A case that either side may win or lose
# has a reason that begins with "a race". The results of all cases are written into
# ports/RESULTS.md.
set -u
# build.sh sets these for configure.
unset CC CXX AR RANLIB NM STRIP LD CFLAGS LDFLAGS HOST CONFIG_SITE CC_FOR_BUILD

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/.." && pwd)
PATH=$top/scripts/bin:$PATH
root=$1 name=$2
shift 2
seconds=${SECONDS_EACH:-60} bin='' links='' side=cage
. "$here/$name/recipe"
[ -f "$here/$name/test" ] || { echo "$name: has no tests"; exit 0; }
. "$here/$name/test"

at() {
	local directory=$1
	shift
	if [ "$side" = native ]; then
		(cd "$arena/$directory" && exec env -i PATH=".:$arena/bin:/usr/bin:/bin" HOME=/ "${environment[@]}" timeout -k 5 "$seconds" "$@")
	else
		local set=()
		for word in PATH=.:/bin HOME=/ "${environment[@]}"; do set+=(-e "$word"); done
		timeout -k 5 "$seconds" "$top/target/release/lind-boot" --root "$arena" --cwd "/$directory" "${set[@]}" "$@"
	fi
}

# Ends what `at` runs in the background, by the number of that job. The job is a shell, whose end
# would leave the program running.
stop() {
	# shellcheck disable=SC2046
	kill $(cat "/proc/$1/task/$1/children")
	wait "$1"
}

# The arena: in a cage, the programs of ROOT too, where Linux has its own.
fill() {
	rm -rf "$arena"
	mkdir -p "$arena/tmp" "$arena/etc" "$arena/bin" "$arena/dev"
	if [ "$side" = cage ]; then
		cp -a "$root/bin/." "$arena/bin/"
		cp -a "$top/lindfs/etc/." "$arena/etc/"
		mkdir -p "$arena/usr"
		ln -s ../bin "$arena/usr/bin"
	fi
	for program in $bin; do cp "$tree/$program" "$arena/bin/"; done
	prepare
}

# For tests that programs of Linux drive: a copy of the tree that was built for Linux, in the arena.
# On the side of the cage, each of the recipe's programs is a script there that runs the cage's; the
# cage's root has its own path inside it too.
fill_tree() {
	local linux=$top/build/ports/$name/native/source program
	cp -a "$linux" "$arena/source"
	find "$arena/source" -name Makefile -exec grep -lFZ "$linux" {} + | xargs -0r sed -i "s,$linux,$arena/source,g"
	[ "$side" = cage ] || return 0
	mkdir -p "$(dirname "$arena$arena")"
	ln -s / "$arena$arena"
	for program in $programs; do
		cp "$tree/$program" "$arena/bin/"
		rm "$arena/source/$program"
		cat >"$arena/source/$program" <<-END
			#!/bin/sh
			set -- --cwd "\$PWD" -e "HOME=\$HOME" "$(basename "$program")" "\$@"
			for name in \$(export -p | sed -n 's/^export \([A-Za-z0-9_]*\)=.*/\1/p'); do
				[ "\$name" = HOME ] || set -- -e "\$name" "\$@"
			done
			# Where the runner keeps its key, whatever a test has set.
			HOME=$HOME exec "$top/target/release/lind-boot" --root "$arena" "\$@"
		END
		chmod +x "$arena/source/$program"
	done
}

# Runs `make check` in a directory of that tree, and prints what automake's files say of each test.
check_tree() {
	local directory=$arena/source/$1 file
	shift
	(cd "$directory" && timeout -k 5 "${SECONDS_ALL:-1500}" make -k check "$@") >"$logs/all.log" 2>&1 </dev/null
	find "$directory" -name '*.trs' | sort | while read -r file; do
		file=${file#"$directory/"}
		mkdir -p "$logs/$(dirname "$file")"
		cp "$directory/${file%.trs}.log" "$logs/${file%.trs}.log"
		case $(sed -n 's/^:global-test-result: //p' "$directory/$file") in
		PASS) echo "${file%.trs} pass" ;; SKIP) echo "${file%.trs} skip" ;; *) echo "${file%.trs} fail" ;;
		esac
	done
}

# Into the file of results, and for people.
verdicts() {
	if declare -F run_all >/dev/null; then
		run_all "$@"
	else
		for case in "$@"; do
			mkdir -p "$(dirname "$logs/$case")"
			run "$case" >"$logs/$case.log" 2>&1 </dev/null
			case $? in 0) echo "$case pass" ;; 77) echo "$case skip" ;; 124 | 137) echo "$case hang" ;; *) echo "$case fail" ;; esac
		done
	fi | while read -r case verdict; do
		echo "$case $verdict" >>"$logs.results.new"
		[ -n "${QUIET:-}" ] || printf '%s (%s): %s %s\n' "$name" "$side" "$verdict" "$case"
	done
}

# In braces, so that an edit of this file does not reach a run of it.
{
for side in ${SIDES:-native cage}; do
	tree=$top/build/ports/$name/$side/source arena=$top/build/ports/$name/$side/arena logs=$top/build/ports/$name/$side/tests
	environment=()
	rm -rf "$logs" "$logs.results.new"
	mkdir -p "$logs"
	fill || { echo "$name: cannot prepare the tests"; exit 1; }
	began=$(date +%s)
	# shellcheck disable=SC2048
	verdicts ${*:-$(cases)}
	mv "$logs.results.new" "$logs.results"
	echo "$name ($side): $(grep -c ' pass$' "$logs.results") of $(grep -c . "$logs.results") pass in $(($(date +%s) - began)) s"
done

for side in native cage; do
	[ -f "$top/build/ports/$name/$side/tests.results" ] || { echo "$name: no results to compare with ($side)"; exit 1; }
done
[ $# != 0 ] || "$here/results.py" "$name"
# Counts the cases that pass on Linux but not in the cage; names those without a known reason, and
# known failures that pass.
join "$top/build/ports/$name/native/tests.results" "$top/build/ports/$name/cage/tests.results" --nocheck-order |
	awk -v known="$here/$name/known" -v name="$name" '
	BEGIN { while ((getline line < known) > 0) { split(line, word, " "); reason[word[1]] = substr(line, length(word[1]) + 3) } }
	$2 == "pass" && $3 == "pass" { good++; if ($1 in reason && reason[$1] !~ /^a race/) { print name ": " $1 " passes, but is known to fail"; wrong++ } }
	$2 == "pass" && $3 != "pass" { if ($1 in reason) { known_failures++ } else { print name ": " $1 ": " $3 " in a cage only"; wrong++ } }
	END { printf "%s: %d agree, %d known to fail, %d wrong\n", name, good, known_failures, wrong; exit wrong > 0 }'
exit
}
