;; Forks while it claims that an exception is being handled: refused, with a message each time.
;; cases.py runs it with a reader that does not listen.
;; whole
;; expect: exit 0
;; says: fork while an exception is being handled is not supported
(module
	(import "lind" "syscall" (func $syscall (param i32 i64 i64 i64 i64 i64 i64) (result i64)))
	(import "lind" "fork" (func $fork (result i32)))
	(memory (export "memory") 65536 65536)
	(global $sp (export "__stack_pointer") (mut i32) (i32.const 0))
	(global $top (export "__lind_fork_top") (mut i32) (i32.const 0))
	(global (export "__lind_fork_pinned") (mut i32) (i32.const 1))
	(func (export "__lind_resume"))
	(func $exit (param i64)
		(drop (call $syscall (i32.const 231) (local.get 0) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)))
		unreachable)
	(func (export "_start") (param i32) (local $times i32)
		(local.set $times (i32.const 3))
		(loop $again
			(if (i32.ne (call $fork) (i32.const -38)) (then (call $exit (i64.const 1))))
			(br_if $again (local.tee $times (i32.sub (local.get $times) (i32.const 1)))))
		(call $exit (i64.const 0))))
