;; Recursion to the end of the stack, and from every depth a call through eight grates: its answer, or EAGAIN.
;; expect: signal 11
;; chain: pass_grate pass_grate pass_grate pass_grate pass_grate pass_grate pass_grate pass_grate
(global $user (mut i64) (i64.const 0))
(func $deeper (param $depth i64) (result i64) (local $result i64)
	(local.set $result (call $s0 (i32.const 107)))
	(if (i64.ne (local.get $result) (i64.const -11)) (then (call $want (global.get $user) (local.get $result))))
	(i64.add (call $deeper (i64.add (local.get $depth) (i64.const 1))) (local.get $result)))
(func $main
	(global.set $user (call $good (call $s0 (i32.const 107))))
	(drop (call $deeper (i64.const 0))))
