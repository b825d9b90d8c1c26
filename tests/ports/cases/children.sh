# Subshells, substitutions, pipes, background jobs.
x=$(echo sub; (echo nested; exit 3); echo $?); echo "$x"
(x=changed; cd /; exit 4); echo $? "$x"
i=0; while [ $i -lt 50 ]; do echo $i; i=$((i + 1)); done | while read n; do [ $n = 49 ] && echo last $n; done
echo one two | { read a b; echo "$b $a"; }
$SH -c 'echo child "$1"; exit 5' sh argument; echo $?
sleeper() { j=0; while [ $j -lt 2000 ]; do j=$((j + 1)); done; echo done; return 6; }
sleeper & wait $!; echo $?
for k in 1 2 3; do (exit $k) & pids="$pids $!"; done
for p in $pids; do wait $p; echo $?; done
! false && echo negated
n=0; while [ $n -lt 200 ]; do [ "$(echo $n)" = $n ] || echo wrong; n=$((n + 1)); done; echo $n
nothing-by-this-name; echo $?
$SH -c 'kill -TERM $$'; echo $?
