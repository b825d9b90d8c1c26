;; Descriptors, flags and modes with bits above those that the kernel uses, for a policy that
;; reads them: no file changes. A call that succeeds has not changed the file.
;; expect: exit 0
;; alone: the line is found by names, which only the runner's own is
;; behind: readonly_grate
;; file: data 10000
(data $path "/data\00")
(data $new "/new\00")
(global $high (mut i64) (i64.const 0))

(func $size (result i64) (local $fd i64) (local $size i64)
	(local.set $fd (call $good (call $s3 (i32.const 2) (i64.const 0x11000) (i64.const 0) (i64.const 0))))
	(local.set $size (call $good (call $s3 (i32.const 8) (local.get $fd) (i64.const 0) (i64.const 2))))
	(call $want (i64.const 0) (call $s1 (i32.const 3) (local.get $fd)))
	(local.get $size))

;; A descriptor, if there is one, is for reading alone.
(func $harmless (param $fd i64)
	(if (i64.ge_s (local.get $fd) (i64.const 0)) (then
		(call $want (i64.const -9) (call $s3 (i32.const 1) (local.get $fd) (i64.const 0x11000) (i64.const 1)))
		(if (i64.ge_s (call $s2 (i32.const 77) (local.get $fd) (i64.const 0)) (i64.const 0)) (then (call $exit (i32.const 2))))
		(call $want (i64.const 0) (call $s1 (i32.const 3) (local.get $fd))))))

(func $refused (param $got i64)
	(if (i64.ge_s (local.get $got) (i64.const 0)) (then (call $want (i64.const -30) (local.get $got)))))

(func $wide (param i64) (result i64) (i64.or (local.get 0) (global.get $high)))

(func $with (local $fd i64)
	;; open: write-only, read-write, emptied, made; openat, creat, openat2 with a wide size
	(call $harmless (call $s3 (i32.const 2) (i64.const 0x11000) (call $wide (i64.const 1)) (i64.const 0)))
	(call $harmless (call $s3 (i32.const 2) (i64.const 0x11000) (call $wide (i64.const 2)) (call $wide (i64.const 0x1ff))))
	(call $harmless (call $s3 (i32.const 2) (i64.const 0x11000) (call $wide (i64.const 0x200)) (i64.const 0)))
	(call $refused (call $s3 (i32.const 2) (i64.const 0x11010) (call $wide (i64.const 0x40)) (i64.const 0x1ff)))
	(call $harmless (call $s4 (i32.const 257) (call $wide (i64.const -100)) (i64.const 0x11000) (call $wide (i64.const 1)) (i64.const 0)))
	(call $harmless (call $s4 (i32.const 257) (call $wide (i64.const 0xffffff9c)) (i64.const 0x11000) (call $wide (i64.const 0x201)) (i64.const 0)))
	(call $refused (call $s2 (i32.const 85) (i64.const 0x11000) (call $wide (i64.const 0x180))))
	;; The path itself with bits above those of an address.
	(call $refused (call $s2 (i32.const 76) (call $wide (i64.const 0x11000)) (i64.const 0)))
	(call $refused (call $s2 (i32.const 76) (i64.const 0x11000) (call $wide (i64.const 0))))
	(call $refused (call $s2 (i32.const 90) (call $wide (i64.const 0x11000)) (i64.const 0)))
	(call $refused (call $s2 (i32.const 90) (i64.const 0x11000) (call $wide (i64.const 0))))
	(call $refused (call $s1 (i32.const 87) (call $wide (i64.const 0x11000))))
	(call $refused (call $s3 (i32.const 263) (call $wide (i64.const -100)) (i64.const 0x11000) (call $wide (i64.const 0))))
	(call $refused (call $s3 (i32.const 263) (call $wide (i64.const 0xffffff9c)) (i64.const 0x11000) (call $wide (i64.const 0))))
	(call $refused (call $s2 (i32.const 82) (call $wide (i64.const 0x11000)) (i64.const 0x11010)))
	(call $refused (call $s2 (i32.const 82) (i64.const 0x11000) (call $wide (i64.const 0x11010))))
	(call $refused (call $s3 (i32.const 88) (i64.const 0x11000) (call $wide (i64.const 0x11010)) (i64.const 0)))
	(call $refused (call $s3 (i32.const 258) (call $wide (i64.const -100)) (i64.const 0x11010) (i64.const 0x1ff)))
	;; By a descriptor that was opened for reading.
	(local.set $fd (call $good (call $s3 (i32.const 2) (i64.const 0x11000) (i64.const 0) (i64.const 0))))
	(call $refused (call $s2 (i32.const 77) (call $wide (local.get $fd)) (i64.const 0)))
	(call $refused (call $s2 (i32.const 91) (call $wide (local.get $fd)) (i64.const 0x1ff)))
	(call $refused (call $s3 (i32.const 93) (call $wide (local.get $fd)) (i64.const 0) (i64.const 0)))
	(call $refused (call $s3 (i32.const 1) (call $wide (local.get $fd)) (i64.const 0x11000) (i64.const 4)))
	(call $want (i64.const 0) (call $s1 (i32.const 3) (local.get $fd)))
	(call $want (i64.const 10000) (call $size))
	(call $want (i64.const -2) (call $s3 (i32.const 2) (i64.const 0x11010) (i64.const 0) (i64.const 0))))

(func $main
	(memory.init $path (i32.const 0x11000) (i32.const 0) (i32.const 6))
	(memory.init $new (i32.const 0x11010) (i32.const 0) (i32.const 5))
	(call $with)
	(global.set $high (i64.const 0x100000000))
	(call $with)
	(global.set $high (i64.const 0xffffffff00000000))
	(call $with)
	(global.set $high (i64.const 0x8000000000000000))
	(call $with))
