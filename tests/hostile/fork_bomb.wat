;; A cage that forks, whose child forks, up to the limit: EAGAIN or ENOMEM, and all of them end.
;; whole
;; expect: exit 0
;; alone: it fills the runner
(module
	(import "lind" "syscall" (func $syscall (param i32 i64 i64 i64 i64 i64 i64) (result i64)))
	(import "lind" "fork" (func $fork (result i32)))
	(memory (export "memory") 65536 65536)
	(global $sp (export "__stack_pointer") (mut i32) (i32.const 0))
	(global $top (export "__lind_fork_top") (mut i32) (i32.const 0))
	(global (export "__lind_fork_pinned") (mut i32) (i32.const 0))
	(global $depth (export "__lind_global_0") (mut i32) (i32.const 0))

	(func $exit (param i32)
		(drop (call $syscall (i32.const 231) (i64.extend_i32_u (local.get 0))
			(i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)))
		unreachable)
	(func $go (param $number i32)
		(if (i32.eq (local.get $number) (i32.const 0x80000000)) (then (return)))
		(if (i32.lt_s (local.get $number) (i32.const 0)) (then
			(if (i32.ne (local.get $number) (i32.const -12)) (then
				(if (i32.ne (local.get $number) (i32.const -11)) (then (call $exit (i32.const 3))))))
			;; As many as one would expect before.
			(call $exit (select (i32.const 0) (i32.const 4) (i32.gt_u (global.get $depth) (i32.const 100))))))
		(global.set $depth (i32.add (global.get $depth) (i32.const 1)))
		(if (i32.eqz (local.get $number)) (then (call $go (call $fork)) (return)))
		(if (i64.ne (i64.extend_i32_u (local.get $number))
			(call $syscall (i32.const 61) (i64.const -1) (i64.const 0x20010)
				(i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0))) (then (call $exit (i32.const 5))))
		(call $exit (i32.shr_u (i32.load (i32.const 0x20010)) (i32.const 8))))

	(func (export "__lind_resume") (call $go (call $fork)))
	(func (export "_start") (param i32)
		(drop (call $syscall (i32.const 12) (i64.const 0x40000) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)))
		(call $go (call $fork))))
