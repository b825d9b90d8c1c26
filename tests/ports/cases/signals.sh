# Traps, in the shell and in its children.
trap 'echo usr1' USR1
kill -USR1 $$; echo after
$SH -c 'trap "echo term; exit 9" TERM; kill -TERM $$; echo not reached'; echo $?
trap - USR1; trap '' INT; kill -INT $$; echo ignored
trap 'echo exit trap' EXIT
$SH -c 'trap "echo inner exit" EXIT; exit 2'; echo $?
(while :; do :; done) & spinning=$!
kill -KILL $spinning; wait $spinning; echo $?
