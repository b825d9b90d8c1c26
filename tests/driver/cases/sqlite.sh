# SQLite's shell: 100,000 inserts, a rollback, an index, and an integrity check.
top=$(dirname "$(dirname "$(dirname "$CASES")")")
[ -x "$top/target/release/lind-boot" ] || { echo "lind-boot is not built"; exit 77; }
command -v tclsh >/dev/null || { echo "no tclsh, with which SQLite's build makes its one source file"; exit 77; }

set -x
"$FETCH" sqlite3 sqlite3_3.40.1.orig.tar.xz aaa776260ab4dc976db34aa7891819484c8676b5b2783123ebc6301e2ca5d655
mkdir source native
tar -xf "$top/build/downloads/sqlite3_3.40.1.orig.tar.xz" -C source --strip-components=1
(cd native && ../source/configure --disable-tcl --disable-shared && make sqlite3.c shell.c)
lind-cc -O2 -DSQLITE_THREADSAFE=1 -Inative native/sqlite3.c native/shell.c -o sqlite3

cp sqlite3 "$CASES/sqlite.sql" "$CAGE"
run() { lind_run --root "$CAGE" "$@"; }
run /sqlite3 test.db ".read sqlite.sql" | tee out
cat >expected <<'END'
100000|4999950000|99999
100000
ok
wal
100001
ok
END
diff -u expected out

# The same over a filesystem in a grate's memory, which has no shared mappings: no write-ahead log.
[ -f "$top/build/grates/imfs_grate.cwasm" ] || { echo "imfs is not built"; exit 77; }
sed s/wal/truncate/ "$CASES/sqlite.sql" >"$CAGE/imfs.sql"
run imfs_grate /sqlite3 /over-imfs.db <"$CAGE/imfs.sql" | tee out
sed s/wal/truncate/ expected | diff -u - out
[ ! -e "$CAGE/over-imfs.db" ]
