# Tests the start of the driver: a build starts it for every file, so it loads only the modules that
# a step needs, and an installed driver is compiled.
printf 'int x;\n' >a.c
printf 'int main(void) { return 0; }\n' >main.c
bin=$(dirname "$(command -v lind-cc)")

# The modules that a command line of the driver has Python load, beyond what Python loads to start.
loads() {
	/usr/bin/python3 -X importtime -IS "$@" 2>&1 >/dev/null | sed -n 's/^import time:.*| *//p' | sort >loaded
	/usr/bin/python3 -X importtime -ISc 'import os' 2>&1 | sed -n 's/^import time:.*| *//p' | sort >own
	comm -23 loaded own | tr '\n' ' '
}
set -x
for step in -c -E -S; do
	[ "$(loads "$bin/lind-cc" $step a.c)" = '__future__ driver driver.build driver.gcc driver.main driver.options driver.place ' ]
done
[ "$(loads "$bin/lind-cc" main.c -o main)" = '__future__ driver driver.build driver.gcc driver.main driver.options driver.place ' ]
[ "$(loads "$bin/$TRIPLE-ar" rcs a.a a.o)" = '__future__ driver driver.main driver.place driver.tools ' ]
