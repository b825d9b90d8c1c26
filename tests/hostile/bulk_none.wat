;; memory.copy into a page without access: a fault of that cage.
;; expect: signal 11
(func $main (local $at i64)
	(local.set $at (call $good (call $map (i64.const 0x3000) (i64.const 3))))
	(call $want (i64.const 0) (call $s3 (i32.const 10) (i64.add (local.get $at) (i64.const 0x1000)) (i64.const 0x1000) (i64.const 0)))
	(memory.copy (i32.wrap_i64 (local.get $at)) (i32.const 0x11000) (i32.const 0x1800)))
