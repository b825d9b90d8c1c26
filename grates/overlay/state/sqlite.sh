#!/bin/sh
# Makes SQLite as one C file, from the source that its port is built from. Usage: sqlite.sh
# DIRECTORY
set -eu

top=$(cd "$(dirname "$0")/../../.." && pwd)
out=$1
. "$top/ports/sqlite3/recipe"

[ "$(cat "$out/.made" 2>/dev/null)" != "$sha256" ] || exit 0
"$top/src/sysroot/fetch.sh" "$package" "$tarball" "$sha256"
rm -rf "$out"
mkdir -p "$out/source"
tar -xf "$top/build/downloads/$tarball" -C "$out/source" --strip-components=1
cd "$out/source"
(env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL CC=cc CFLAGS= LDFLAGS= CONFIG_SITE=/dev/null ./configure --disable-tcl --disable-shared &&
	env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL make sqlite3.c) >"$out/log" 2>&1 || { tail -n 20 "$out/log" >&2; exit 1; }
mv sqlite3.c sqlite3.h "$out/"
rm -rf "$out/source"
echo "$sha256" >"$out/.made"
