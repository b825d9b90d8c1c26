;; A program that keeps to the contract of fork (docs/fork.md) without our compiler: parents, children and their children.
;; whole
;; expect: exit 0
(module
	(import "lind" "syscall" (func $syscall (param i32 i64 i64 i64 i64 i64 i64) (result i64)))
	(import "lind" "fork" (func $fork (result i32)))
	(memory (export "memory") 65536 65536)
	(global $sp (export "__stack_pointer") (mut i32) (i32.const 0))
	(global $top (export "__lind_fork_top") (mut i32) (i32.const 0))
	(global (export "__lind_fork_pinned") (mut i32) (i32.const 0))
	;; How many forks lie behind, in a global that only the copy of globals brings to a child.
	(global $depth (export "__lind_global_0") (mut i64) (i64.const 0))

	(func $exit (param i32)
		(drop (call $syscall (i32.const 231) (i64.extend_i32_u (local.get 0))
			(i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)))
		unreachable)
	(func $want (param i64 i64) (param $status i32)
		(if (i64.ne (local.get 0) (local.get 1)) (then (call $exit (local.get $status)))))

	(func $go (param $number i32)
		(if (i32.eq (local.get $number) (i32.const 0x80000000)) (then
			;; Somewhere in the main stack, below what is in use.
			(call $want (i64.const 0) (i64.and (i64.extend_i32_u (global.get $top)) (i64.const 15)) (i32.const 20))
			(call $want (i64.const 1) (i64.extend_i32_u (i32.lt_u (global.get $top) (global.get $sp))) (i32.const 21))
			(return)))
		(if (i32.lt_s (local.get $number) (i32.const 0)) (then (call $exit (i32.const 22))))
		(global.set $depth (i64.add (global.get $depth) (i64.const 1)))
		;; Memory is copied and is the child's own.
		(i64.store (i32.const 0x20000) (i64.add (i64.load (i32.const 0x20000)) (i64.const 1)))
		(call $want (global.get $depth) (i64.load (i32.const 0x20000)) (i32.const 23))
		(if (i32.eqz (local.get $number))
			(then
				(if (i64.lt_u (global.get $depth) (i64.const 4)) (then (call $go (call $fork)) (return)))
				(call $exit (i32.const 40)))
			(else
				(call $want (i64.extend_i32_u (local.get $number))
					(call $syscall (i32.const 61) (i64.const -1) (i64.const 0x20010)
						(i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)) (i32.const 24))
				;; The innermost ends with 40, every parent with one more.
				(call $want (i64.sub (i64.const 44) (global.get $depth))
					(i64.shr_u (i64.load32_u (i32.const 0x20010)) (i64.const 8)) (i32.const 25))
				(if (i64.eq (global.get $depth) (i64.const 1)) (then (call $exit (i32.const 0))))
				(call $exit (i32.wrap_i64 (i64.sub (i64.const 45) (global.get $depth)))))))

	(func (export "__lind_resume") (call $go (call $fork)))
	(func (export "_start") (param i32)
		(drop (call $syscall (i32.const 12) (i64.const 0x40000) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)))
		(call $go (call $fork))))
