;; Programs that break the contract of fork harm only themselves. The number of forks so far
;; decides what each does.
;; whole
;; expect: exit 0
(module
	(import "lind" "syscall" (func $syscall (param i32 i64 i64 i64 i64 i64 i64) (result i64)))
	(import "lind" "fork" (func $fork (result i32)))
	(memory (export "memory") 65536 65536)
	(global $sp (export "__stack_pointer") (mut i32) (i32.const 0))
	(global $top (export "__lind_fork_top") (mut i32) (i32.const 0))
	(global $pinned (export "__lind_fork_pinned") (mut i32) (i32.const 0))
	(global $stage (export "__lind_global_0") (mut i32) (i32.const 0))

	(func $s3 (param i32 i64 i64 i64) (result i64) (call $syscall (local.get 0)
		(local.get 1) (local.get 2) (local.get 3) (i64.const 0) (i64.const 0) (i64.const 0)))
	(func $exit (param i32)
		(drop (call $s3 (i32.const 231) (i64.extend_i32_u (local.get 0)) (i64.const 0) (i64.const 0)))
		unreachable)
	(func $want (param i64 i64) (param $status i32)
		(if (i64.ne (local.get 0) (local.get 1)) (then (call $exit (local.get $status)))))
	(func $unwinds
		(call $want (i64.const 0x80000000) (i64.extend_i32_u (call $fork)) (i32.const 10)))

	(func (export "_start") (param i32)
		(drop (call $s3 (i32.const 12) (i64.const 0x40000) (i64.const 0) (i64.const 0)))
		;; Pinned: refused, and nothing happens.
		(global.set $pinned (i32.const 1))
		(call $want (i64.const -38) (i64.extend_i32_s (call $fork)) (i32.const 11))
		(global.set $pinned (i32.const 0))
		;; An invalid stack pointer harms only the program.
		(global.set $sp (i32.const 64))
		(call $unwinds)
		;; Calls instead of unwinding, and another fork.
		(call $want (i64.const -9) (call $s3 (i32.const 3) (i64.const 77) (i64.const 0) (i64.const 0)) (i32.const 12))
		(call $want (i64.const -38) (i64.extend_i32_s (call $fork)) (i32.const 13))
		;; And a thread and a vfork that have no place to start.
		(call $want (i64.const -22) (call $s3 (i32.const 56) (i64.const 0x50f00) (i64.const 0) (i64.const 0)) (i32.const 14))
		(call $want (i64.const -38) (call $s3 (i32.const 56) (i64.const 0x50f00) (i64.const 0x20000) (i64.const 0)) (i32.const 15))
		(call $want (i64.const -38) (call $s3 (i32.const 56) (i64.const 0x4111) (i64.const 0x20000) (i64.const 0)) (i32.const 16))
		(call $want (i64.const -38) (call $s3 (i32.const 56) (i64.const 17) (i64.const 0) (i64.const 0)) (i32.const 17))
		(call $want (i64.const -22) (call $s3 (i32.const 56) (i64.const 0x100) (i64.const 0x20000) (i64.const 0)) (i32.const 18))
		(call $want (i64.const -1) (call $s3 (i32.const 56) (i64.const 0x10000011) (i64.const 0x20000) (i64.const 0)) (i32.const 19)))

	(func (export "__lind_resume") (local $number i32) (local $status i64)
		(if (i32.eqz (global.get $stage)) (then
			;; Not asking for the number: other calls first, then twice.
			(drop (call $s3 (i32.const 39) (i64.const 0) (i64.const 0) (i64.const 0)))
			(local.set $number (call $fork))
			(if (i32.eqz (local.get $number)) (then unreachable))
			(call $want (i64.extend_i32_u (local.get $number))
				(call $s3 (i32.const 61) (i64.const -1) (i64.const 0x20010) (i64.const 0)) (i32.const 30))
			;; SIGILL, and no core.
			(call $want (i64.const 0x04) (i64.load32_u (i32.const 0x20010)) (i32.const 31))
			(global.set $stage (i32.const 1))
			(call $unwinds)
			(return)))
		;; The child never asks and returns at once, which ends it; the parent exits.
		(local.set $number (call $fork))
		(if (i32.eqz (local.get $number)) (then (return)))
		(call $want (i64.extend_i32_u (local.get $number))
			(call $s3 (i32.const 61) (i64.const -1) (i64.const 0x20010) (i64.const 0)) (i32.const 32))
		(call $want (i64.const 0) (i64.load32_u (i32.const 0x20010)) (i32.const 33))
		(call $exit (i32.const 0))))
