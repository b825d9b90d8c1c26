# Programs for cages that Linux itself starts, once it was told how; and a compiler of which each
# program is a script that starts it.
cat >sizes.c <<'END'
#include <stdio.h>
int main(int count, char **words)
{
	printf("%zu %s\n", sizeof(long), count > 1 ? words[1] : "none");
	return count;
}
END

"$CASES/../../../ports/launch-cc" -O1 sizes.c -o launched
[ "$(./launched one || echo "status $?")" = "4 one
status 2" ]
[ "$(head -c 4 launched.wasm | od -An -c | tr -d ' ')" = '\0asm' ]
"$CASES/../../../ports/launch-cc" -c sizes.c -o sizes.o
[ ! -e sizes.o.wasm ]

# It is the whole machine's: under a name of its own, and for a moment.
export LIND_BINFMT_NAME="lind-test-$$"
binfmt=$CASES/../../../scripts/binfmt
[ "$("$binfmt" status)" = "not registered" ]
! "$binfmt" unregister 2>/dev/null
if ! "$binfmt" register 2>refused; then
	grep -q -e 'only root' -e 'no binfmt_misc' -e 'kernel refused' refused
	cat refused
	exit 77
fi
trap '"$binfmt" unregister' EXIT
! "$binfmt" register 2>/dev/null
lind-cc -O1 sizes.c -o sizes
[ "$(./sizes one two || echo "status $?")" = "4 one
status 3" ]
