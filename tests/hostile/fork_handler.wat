;; Signal handlers that fork and do not keep to the contract: they go on, fork again, throw, trap, exit with the child unborn.
;; whole
;; expect: exit 0
(module
	(import "lind" "syscall" (func $syscall (param i32 i64 i64 i64 i64 i64 i64) (result i64)))
	(import "lind" "fork" (func $fork (result i32)))
	(memory (export "memory") 65536 65536)
	(tag $away)
	(global $sp (export "__stack_pointer") (mut i32) (i32.const 0))
	(global $top (export "__lind_fork_top") (mut i32) (i32.const 0))
	(global (export "__lind_fork_pinned") (mut i32) (i32.const 0))
	(global $stage (export "__lind_global_0") (mut i32) (i32.const 0))
	(table (export "__indirect_function_table") 4 4 funcref)
	(elem (i32.const 2) func $handler $odd)

	(func $s3 (param i32 i64 i64 i64) (result i64) (call $syscall (local.get 0)
		(local.get 1) (local.get 2) (local.get 3) (i64.const 0) (i64.const 0) (i64.const 0)))
	(func $exit (param i32)
		(drop (call $s3 (i32.const 231) (i64.extend_i32_u (local.get 0)) (i64.const 0) (i64.const 0)))
		unreachable)
	(func $want (param i64 i64) (param $status i32)
		(if (i64.ne (local.get 0) (local.get 1)) (then (call $exit (local.get $status)))))
	(func $child_ended (param $number i32) (param $signal i64) (param $status i32)
		(call $want (i64.extend_i32_u (local.get $number))
			(call $s3 (i32.const 61) (i64.const -1) (i64.const 0x20010) (i64.const 0)) (local.get $status))
		(call $want (local.get $signal) (i64.and (i64.load32_u (i32.const 0x20010)) (i64.const 0x7f)) (local.get $status)))
	(func $unwinds (param $status i32)
		(call $want (i64.const 0x80000000) (i64.extend_i32_u (call $fork)) (local.get $status)))
	(func $no_child (param $status i32)
		(call $want (i64.const -10) (call $s3 (i32.const 61) (i64.const -1) (i64.const 0x20010) (i64.const 1)) (local.get $status)))

	;; A handler of a type that none has: it cannot fork.
	(func $odd (param i32) (result i32)
		(call $want (i64.const -38) (i64.extend_i32_s (call $fork)) (i32.const 10))
		(i32.const 0))

	(func $handler (param $signal i32)
		(call $unwinds (i32.const 11))
		(if (i32.eqz (global.get $stage)) (then
			;; Calls instead of leaving, another fork, and an exception.
			(call $want (i64.const -9) (call $s3 (i32.const 3) (i64.const 77) (i64.const 0) (i64.const 0)) (i32.const 12))
			(call $want (i64.const -38) (i64.extend_i32_s (call $fork)) (i32.const 13))
			(throw $away)))
		(if (i32.eq (global.get $stage) (i32.const 4)) (then (call $exit (i32.const 0)))))

	(func (export "__lind_resume") (local $number i32) (local $stage i32)
		(local.set $stage (global.get $stage))
		(local.set $number (call $fork))
		(block $over (block $fourth (block $third (block $second (block $first
			(br_table $first $second $third $fourth $over (local.get $stage)))
			;; The child comes back, to nothing. The parent forks again before it comes back.
			(if (i32.eqz (local.get $number)) (then (return)))
			(call $child_ended (local.get $number) (i64.const 6) (i32.const 20))
			(global.set $stage (i32.const 1))
			(call $unwinds (i32.const 21))
			(return))
			;; The child traps.
			(if (i32.eqz (local.get $number)) (then unreachable))
			(call $child_ended (local.get $number) (i64.const 4) (i32.const 22))
			(global.set $stage (i32.const 2))
			(return))
			;; Both throw: the child to nobody.
			(if (local.get $number)
				(then (call $child_ended (local.get $number) (i64.const 6) (i32.const 23)) (global.set $stage (i32.const 3))))
			(throw $away))
			;; The child raises the signal itself, whose handler forks, and exits there.
			(if (i32.eqz (local.get $number)) (then (call $exit (i32.const 0))))
			(call $child_ended (local.get $number) (i64.const 0) (i32.const 24))
			(global.set $stage (i32.const 4))
			(return))
		unreachable)

	(func $raise
		(drop (call $s3 (i32.const 62) (call $s3 (i32.const 39) (i64.const 0) (i64.const 0) (i64.const 0)) (i64.const 10) (i64.const 0))))
	(func $handle (param $index i32)
		(i32.store (i32.const 0x20100) (local.get $index))
		;; SA_NODEFER: an exception leaves the mask as the handler had it.
		(i32.store (i32.const 0x20104) (i32.const 0x40000000))
		(call $want (i64.const 0) (call $syscall (i32.const 13)
			(i64.const 10) (i64.const 0x20100) (i64.const 0) (i64.const 8) (i64.const 0) (i64.const 0)) (i32.const 30)))

	(func (export "_start") (param i32)
		(drop (call $s3 (i32.const 12) (i64.const 0x40000) (i64.const 0) (i64.const 0)))
		(call $handle (i32.const 3))
		(call $raise)
		(call $no_child (i32.const 31))
		(call $handle (i32.const 2))
		;; Stages 0 and 1.
		(call $raise)
		(call $want (i64.const 2) (i64.extend_i32_u (global.get $stage)) (i32.const 32))
		;; Stage 2: the exception arrives.
		(block $caught
			(try_table (catch $away $caught) (call $raise))
			(call $exit (i32.const 33)))
		(call $want (i64.const 3) (i64.extend_i32_u (global.get $stage)) (i32.const 34))
		;; A stack pointer that points nowhere is the program's own affair.
		(global.set $sp (i32.const 0x30000))
		(call $raise)
		(call $want (i64.const 4) (i64.extend_i32_u (global.get $stage)) (i32.const 35))
		(call $no_child (i32.const 36))
		;; The end, with a child that is not born.
		(call $raise)
		(call $exit (i32.const 37))))
