;; A cage that starts itself, which starts itself, up to the limit: each of them is behind the
;; policy, at its birth and after its child. If the grate itself lacks memory, calls fail.
;; expect: exit 0
;; chain: policy_grate
;; alone: it fills the runner
(func $none (param i64) (result i32) (i32.or (i64.eq (local.get 0) (i64.const -12)) (i64.eq (local.get 0) (i64.const -11))))
(func $behind (local $got i64)
	(local.set $got (call $s0 (i32.const 107)))
	(if (call $none (local.get $got)) (then (return)))
	(call $want (i64.const 4242) (local.get $got)))
(func $main (local $pid i64)
	(call $behind)
	(i32.store (i32.const 0x11000) (i32.load offset=4 (global.get $block)))
	(i32.store (i32.const 0x11004) (i32.const 0))
	(local.set $pid (call $spawn (i32.const 0x11000)))
	(call $behind)
	(if (i64.gt_s (local.get $pid) (i64.const 0)) (then
		(call $want (i64.const 0) (call $wait (local.get $pid)))
		(call $behind)))
	(if (i64.le_s (local.get $pid) (i64.const 0)) (then
		(if (i32.eqz (call $none (local.get $pid))) (then (call $want (i64.const -11) (local.get $pid)))))))
