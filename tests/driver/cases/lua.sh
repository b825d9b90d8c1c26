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

# As for Linux, where it loads modules in C. One is joined to it.
make clean
make -j2 linux CC=lind-cc AR="$TRIPLE-ar rcu" RANLIB=$TRIPLE-ranlib
cat >counter.c <<'END'
#include "lauxlib.h"
#include "lua.h"
static int next(lua_State *L)
{
	lua_Integer n = lua_tointeger(L, lua_upvalueindex(1));
	if (n == 3)
		return luaL_error(L, "no more than %d", 3);
	lua_pushinteger(L, n + 1);
	lua_copy(L, -1, lua_upvalueindex(1));
	return 1;
}
int luaopen_counter(lua_State *L)
{
	lua_pushinteger(L, 0);
	lua_pushcclosure(L, next, 1);
	return 1;
}
END
lind-cc -O2 -fPIC -shared -Isrc counter.c -o counter.so
cp counter.so "$CAGE"
cp src/lua "$CAGE/lua"
counts='package.cpath = "./?.so"; local n = require "counter"; print(n(), n(), n(), pcall(n))'
run /lua -e "$counts" 2>&1 | grep 'not part of this program: .lind-link /lua ./counter.so. joins it'
lind-link src/lua counter.so -o "$CAGE/lua"
[ "$(run /lua -e "$counts")" = "1	2	3	false	no more than 3" ]
run /lua lua.lua
