# Lua, built by its own makefile, passes its own test and a script that goes through its libraries.
top=$(dirname "$(dirname "$(dirname "$CASES")")")
[ -x "$top/target/release/lind-boot" ] || { echo "lind-boot is not built"; exit 77; }

set -x
"$FETCH" lua5.4 lua5.4_5.4.4.orig.tar.gz 164c7849653b80ae67bec4b7473b884bf5cc8d2dca05653475ec2ed27b9ebf61
tar -xf "$top/build/downloads/lua5.4_5.4.4.orig.tar.gz" --strip-components=1
make -j2 posix CC=lind-cc AR="$TRIPLE-ar rcu" RANLIB=$TRIPLE-ranlib

cp src/lua src/luac "$CASES/lua.lua" "$CAGE"
run() { lind_run --root "$CAGE" "$@"; }
run /lua -v | grep '^Lua 5.4.4'
run /lua lua.lua
run /luac -o lua.luac lua.lua
run /lua lua.luac
[ "$(echo 'print(1 + 1)' | run /lua -)" = 2 ]
