;; A cage that starts itself, which starts itself, up to the limit: EAGAIN or ENOMEM, and all of
;; them end.
;; expect: exit 0
;; alone: it fills the runner
(func $main (local $pid i64)
	(i32.store (i32.const 0x11000) (i32.load offset=4 (global.get $block)))
	(i32.store (i32.const 0x11004) (i32.const 0))
	(local.set $pid (call $spawn (i32.const 0x11000)))
	(if (i64.gt_s (local.get $pid) (i64.const 0)) (then
		(call $want (i64.const 0) (call $wait (local.get $pid)))
		(call $exit (i32.const 0))))
	(if (i64.ne (local.get $pid) (i64.const -12)) (then (call $want (i64.const -11) (local.get $pid)))))
