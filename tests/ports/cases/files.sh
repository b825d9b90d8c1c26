# Redirections and here documents.
echo text >file; read line <file; echo "$line"
echo more >>file
while read line; do echo "<$line>"; done <file
exec 3<file; read a <&3; read b <&3; exec 3<&-; echo "$a $b"
name=world
read line <<END
hello $name $((1 + 1)) $(echo inner)
END
echo "$line"
{ while read line; do echo "$line"; done; } <<'END'
$not $(expanded)
END
{ echo out; echo err >&2; } 2>&1 | { read a; read b; echo "$b $a"; }
echo to a file that is not there >/nowhere/at/all; echo $?
set -C; echo again >file; echo $?
: >"with space"; for f in *; do echo "$f"; done
[ -f file ] && [ ! -d file ] && [ -s file ] && echo tested
echo '#!'$SH >script; echo 'echo script "$0" "$@"' >>script
$SH ./script 1 2
