;; A child that spins, one that waits for input and one that sleeps: SIGKILL ends each, and nothing else.
;; expect: exit 0
(func $child (param $kind i32)
	(if (i32.eq (local.get $kind) (i32.const 49)) (then (loop $spin (br $spin))))
	(if (i32.eq (local.get $kind) (i32.const 50)) (then
		(drop (call $s3 (i32.const 0) (i64.const 9) (i64.const 0x12000) (i64.const 1)))))
	(if (i32.eq (local.get $kind) (i32.const 51)) (then
		(i64.store (i32.const 0x12000) (i64.const 1000))
		(drop (call $s2 (i32.const 35) (i64.const 0x12000) (i64.const 0)))))
	(if (i32.eq (local.get $kind) (i32.const 52)) (then
		(call $want (i64.const -4) (call $s3 (i32.const 7) (i64.const 0) (i64.const 0) (i64.const -1)))))
	(call $exit (i32.const 7)))

(func $kill (param $kind i32) (param $pause i64) (local $pid i64)
	(i32.store (i32.const 0x11000) (i32.load offset=4 (global.get $block)))
	(i32.store (i32.const 0x11004) (i32.const 0x11100))
	(i32.store (i32.const 0x11008) (i32.const 0))
	(i32.store (i32.const 0x11100) (local.get $kind))
	;; argv[0] of the child is what it is to do.
	(i32.store (i32.const 0x11000) (i32.load offset=4 (global.get $block)))
	(local.set $pid (call $good (call $spawn (i32.const 0x11000))))
	(i64.store (i32.const 0x11200) (i64.const 0))
	(i64.store (i32.const 0x11208) (local.get $pause))
	(drop (call $s2 (i32.const 35) (i64.const 0x11200) (i64.const 0)))
	(call $want (i64.const 0) (call $s2 (i32.const 62) (local.get $pid) (i64.const 9)))
	(call $want (i64.const 9) (call $wait (local.get $pid))))

(func $all (param $pause i64)
	(call $kill (i32.const 49) (local.get $pause))
	(call $kill (i32.const 50) (local.get $pause))
	(call $kill (i32.const 51) (local.get $pause))
	(call $kill (i32.const 52) (local.get $pause)))

(func $main
	(if (i32.gt_u (i32.load (global.get $block)) (i32.const 1)) (then
		(call $child (i32.load8_u (i32.load offset=8 (global.get $block))))))
	;; Both ends of the pipe that the child reads.
	(call $want (i64.const 0) (call $s1 (i32.const 22) (i64.const 0x11300)))
	(call $want (i64.const 9) (call $s2 (i32.const 33) (i64.load32_u (i32.const 0x11300)) (i64.const 9)))
	(call $all (i64.const 20000000))
	(call $all (i64.const 100000))
	(call $all (i64.const 1)))
