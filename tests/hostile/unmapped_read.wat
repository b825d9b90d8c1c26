;; Memory is unmapped under a read, and under a copy between cages, repeatedly.
;; expect: exit 0
;; chain: unmap_grate
;; file: data 10000
(data $path "/data\00")
(func $main (local $fd i64) (local $i i32) (local $result i64)
	(memory.init $path (i32.const 0x11000) (i32.const 0) (i32.const 6))
	(local.set $fd (call $good (call $s3 (i32.const 2) (i64.const 0x11000) (i64.const 0) (i64.const 0))))
	(loop $again
		(local.set $result (call $s4 (i32.const 17) (local.get $fd) (i64.const 0x12000) (i64.const 4096) (i64.const 0)))
		(call $some (i64.const 4096) (local.get $result))
		(local.set $i (i32.add (local.get $i) (i32.const 1)))
		(br_if $again (i32.lt_u (local.get $i) (i32.const 20000)))))
