;; Calls a grate that runs another program meanwhile, from this cage and from a child: dead
;; entries, EIO. Both can end.
;; expect: exit 0
;; chain: exec_grate
(func $main (local $pid i64) (local $got i64)
	(call $want (i64.const 42) (call $s0 (i32.const 107)))
	(if (i32.gt_u (i32.load (global.get $block)) (i32.const 1)) (then
		;; Its worker is there: the parent may go on.
		(call $want (i64.const 1) (call $s3 (i32.const 1) (i64.const 51) (i64.const 0x11000) (i64.const 1)))
		(loop $again
			(local.set $got (call $s0 (i32.const 107)))
			(br_if $again (i64.eq (local.get $got) (i64.const 42))))
		(call $want (i64.const -5) (local.get $got))
		(return)))
	(i32.store (i32.const 0x11000) (i32.load offset=4 (global.get $block)))
	(i32.store (i32.const 0x11004) (i32.load offset=4 (global.get $block)))
	(i32.store (i32.const 0x11008) (i32.const 0))
	(call $want (i64.const 0) (call $s1 (i32.const 22) (i64.const 0x11020)))
	(call $want (i64.const 51) (call $s2 (i32.const 33) (i64.load32_u (i32.const 0x11024)) (i64.const 51)))
	(local.set $pid (call $good (call $spawn (i32.const 0x11000))))
	(call $want (i64.const 1) (call $s3 (i32.const 0) (i64.load32_u (i32.const 0x11020)) (i64.const 0x11000) (i64.const 1)))
	(call $want (i64.const -5) (call $s0 (i32.const 39)))
	(call $want (i64.const -5) (call $s0 (i32.const 39)))
	(call $want (i64.const -5) (call $s0 (i32.const 107)))
	(call $want (i64.const 0) (call $wait (local.get $pid))))
