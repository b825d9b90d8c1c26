;; A file shrinks under its mapping: the kernel says EFAULT, and a load ends the cage by SIGBUS.
;; expect: signal 7
;; file: data 10000
(data $path "/data\00")
(func $main (local $fd i64) (local $at i64)
	(memory.init $path (i32.const 0x11000) (i32.const 0) (i32.const 6))
	(local.set $fd (call $good (call $s3 (i32.const 2) (i64.const 0x11000) (i64.const 2) (i64.const 0))))
	(call $want (i64.const 0) (call $s2 (i32.const 77) (local.get $fd) (i64.const 8192)))
	(local.set $at (call $good (call $s6 (i32.const 9)
		(i64.const 0) (i64.const 8192) (i64.const 3) (i64.const 1) (local.get $fd) (i64.const 0))))
	(drop (i64.load (i32.wrap_i64 (local.get $at))))
	(call $want (i64.const 0) (call $s2 (i32.const 77) (local.get $fd) (i64.const 0)))
	(call $want (i64.const -14) (call $s1 (i32.const 63) (local.get $at)))
	(call $want (i64.const -14) (call $s3 (i32.const 2) (local.get $at) (i64.const 0) (i64.const 0)))
	(call $want (i64.const -14) (call $s3 (i32.const 1) (local.get $fd) (local.get $at) (i64.const 16)))
	(drop (i64.load (i32.wrap_i64 (local.get $at)))))
