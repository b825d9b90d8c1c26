;; A program that asks for vfork with a false address of its records, and whose child overwrites
;; them: errnos, or its own end.
;; whole
;; expect: exit 0
(module
	(import "lind" "syscall" (func $syscall (param i32 i64 i64 i64 i64 i64 i64) (result i64)))
	(import "lind" "fork" (func $fork (result i32)))
	(memory (export "memory") 65536 65536)
	(global $sp (export "__stack_pointer") (mut i32) (i32.const 0))
	(global $top (export "__lind_fork_top") (mut i32) (i32.const 0))
	(global (export "__lind_fork_pinned") (mut i32) (i32.const 0))
	(global $shares (export "__lind_vfork") (mut i32) (i32.const 0))
	;; The number of the next attempt.
	(global $stage (export "__lind_global_0") (mut i32) (i32.const 0))

	(func $exit (param i32)
		(drop (call $syscall (i32.const 231) (i64.extend_i32_u (local.get 0))
			(i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)))
		unreachable)
	(func $want (param i64 i64) (param $status i32)
		(if (i64.ne (local.get 0) (local.get 1)) (then (call $exit (local.get $status)))))
	(func $asks (param $status i32)
		(global.set $shares (i32.const 1))
		(call $want (i64.const 0x80000000) (i64.extend_i32_u (call $fork)) (local.get $status))
		;; The wish is for one fork.
		(call $want (i64.const 0) (i64.extend_i32_u (global.get $shares)) (local.get $status)))
	(func $none (param $status i32)
		(call $want (i64.const -10) (call $syscall (i32.const 61) (i64.const -1) (i64.const 0x20010)
			(i64.const 1) (i64.const 0) (i64.const 0) (i64.const 0)) (local.get $status)))

	(func (export "__lind_resume") (local $number i32)
		(local.set $number (call $fork))
		(global.set $stage (i32.add (global.get $stage) (i32.const 1)))
		(if (i32.eq (global.get $stage) (i32.const 1)) (then
			;; The records seemed to lie above the stack.
			(call $want (i64.const -12) (i64.extend_i32_s (local.get $number)) (i32.const 11))
			(call $none (i32.const 12))
			(call $asks (i32.const 13))
			(global.set $top (i32.const 0))
			(return)))
		(if (i32.eq (global.get $stage) (i32.const 2)) (then
			;; They seemed to be all that is below it.
			(call $want (i64.const -12) (i64.extend_i32_s (local.get $number)) (i32.const 14))
			(call $none (i32.const 15))
			(call $asks (i32.const 16))
			;; Where nothing is mapped.
			(global.set $sp (i32.const 0x9000))
			(global.set $top (i32.const 0x8000))
			(return)))
		(if (i32.eq (global.get $stage) (i32.const 3)) (then
			(call $want (i64.const 1) (i64.extend_i32_u (i32.lt_s (local.get $number) (i32.const 0))) (i32.const 17))
			(call $none (i32.const 18))
			(global.set $sp (i32.const 0x30000))
			(call $asks (i32.const 19))
			(global.set $top (i32.const 0x2ff00))
			(i32.store (i32.const 0x2ff00) (i32.const 7))
			(return)))
		(if (i32.eqz (local.get $number)) (then
			;; The child is on this memory, and takes the records away.
			(i32.store (i32.const 0x20020) (i32.const 77))
			(i32.store (i32.const 0x2ff00) (i32.const 0))
			(drop (call $syscall (i32.const 11) (i64.const 0x2f000) (i64.const 0x1000)
				(i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)))
			(drop (call $syscall (i32.const 9) (i64.const 0x2f000) (i64.const 0x1000)
				(i64.const 3) (i64.const 0x32) (i64.const -1) (i64.const 0)))
			unreachable))
		(call $want (i64.const 1) (i64.extend_i32_u (i32.gt_s (local.get $number) (i32.const 0))) (i32.const 20))
		(call $want (i64.const 77) (i64.load32_u (i32.const 0x20020)) (i32.const 21))
		(call $want (i64.const 7) (i64.load32_u (i32.const 0x2ff00)) (i32.const 22))
		;; The child has trapped: SIGILL.
		(call $want (i64.extend_i32_u (local.get $number))
			(call $syscall (i32.const 61) (i64.const -1) (i64.const 0x20010)
				(i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)) (i32.const 23))
		(call $want (i64.const 4) (i64.and (i64.load32_u (i32.const 0x20010)) (i64.const 0x7f)) (i32.const 24))
		;; clone with these flags by hand is not a vfork.
		(call $want (i64.const -38) (call $syscall (i32.const 56) (i64.const 0x4111) (i64.const 0)
			(i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)) (i32.const 25))
		(call $exit (i32.const 0)))

	(func (export "_start") (param i32)
		(drop (call $syscall (i32.const 12) (i64.const 0x40000) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)))
		(call $asks (i32.const 10))
		(global.set $top (i32.add (global.get $sp) (i32.const 64)))))
