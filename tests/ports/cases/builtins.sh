# Commands that need no other process.
x=$((3 * 4 + (1 << 5))); echo $x
for i in a b c; do [ $i = b ] && continue; printf '%s,' $i; done; echo
f() { local y=$1; shift; echo "$y $# $*"; return 3; }
f one two "three four"; echo $?
case hello in h*o) echo match ;; *) echo none ;; esac
while getopts ab:c opt -a -b value -c; do echo "$opt $OPTARG"; done
set -- a 'b c' d; echo $# "$2" ${3%d}end ${unset:-default} ${#2}
cd /; pwd
eval 'y=$x'; echo $y
trap 'echo bye' EXIT
umask 027; umask
exit 7
