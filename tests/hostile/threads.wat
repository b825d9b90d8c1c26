;; Threads without our libc: blocks at invalid addresses, words that cannot be written, lists
;; that are rings, threads up to the limit, and the end of all of them at once.
;; whole
;; expect: exit 0
;; alone: it fills the runner
(module
	(import "lind" "syscall" (func $syscall (param i32 i64 i64 i64 i64 i64 i64) (result i64)))
	(memory (export "memory") 65536 65536)
	(func $s5 (param i32 i64 i64 i64 i64 i64) (result i64) (call $syscall (local.get 0)
		(local.get 1) (local.get 2) (local.get 3) (local.get 4) (local.get 5) (i64.const 0)))
	(func $exit (param i32)
		(drop (call $s5 (i32.const 231) (i64.extend_i32_u (local.get 0)) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)))
		unreachable)
	(func $want (param i64 i64) (param $status i32)
		(if (i64.ne (local.get 0) (local.get 1)) (then (call $exit (local.get $status)))))
	;; CLONE_VM | FS | FILES | SIGHAND | THREAD and more.
	(func $thread (param $more i64) (param $block i64) (param $ptid i64) (param $ctid i64) (result i64)
		(call $s5 (i32.const 56) (i64.or (i64.const 0x10f00) (local.get $more))
			(local.get $block) (local.get $ptid) (local.get $ctid) (i64.const 0)))

	(func (export "__lind_thread_start") (param $block i32)
		;; The block's address decides what the thread does.
		(if (i32.eq (local.get $block) (i32.const 1)) (then
			;; Lists and words of nonsense, then the end.
			(i32.store (i32.const 0x30000) (i32.const 0x30010))
			(i32.store (i32.const 0x30004) (i32.const -16))
			(i32.store (i32.const 0x30008) (i32.const 0xfffffffd))
			(i32.store (i32.const 0x30010) (i32.const 0x30020))
			(i32.store (i32.const 0x30020) (i32.const 0x30010))
			(drop (call $s5 (i32.const 273) (i64.const 0x30000) (i64.const 12) (i64.const 0) (i64.const 0) (i64.const 0)))
			(drop (call $s5 (i32.const 218) (i64.const 0xfffffffe) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)))
			(drop (i32.atomic.rmw.add (i32.const 0x20000) (i32.const 1)))
			(drop (call $s5 (i32.const 60) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)))))
		(if (i32.eq (local.get $block) (i32.const 2)) (then (loop $spin (br $spin))))
		(if (i32.eq (local.get $block) (i32.const 3)) (then
			(loop $again
				(drop (call $s5 (i32.const 7) (i64.const 0) (i64.const 0) (i64.const -1) (i64.const 0) (i64.const 0)))
				(br $again))))
		;; Returning ends the thread, and no other.
		(drop (i32.atomic.rmw.add (i32.const 0x20000) (i32.const 1))))

	(func $until (param $count i32)
		(loop $wait
			(drop (call $s5 (i32.const 24) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)))
			(br_if $wait (i32.lt_u (i32.atomic.load (i32.const 0x20000)) (local.get $count)))))

	(func (export "_start") (param i32) (local $made i32) (local $tid i64)
		(drop (call $s5 (i32.const 12) (i64.const 0x40000) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)))
		(call $want (i64.const -22) (call $thread (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)) (i32.const 2))
		(call $want (i64.const -22) (call $thread (i64.const 0) (i64.const 0x100000000) (i64.const 0) (i64.const 0)) (i32.const 3))
		;; The words cannot be written: no thread.
		(call $want (i64.const -14) (call $thread (i64.const 0x100000) (i64.const 5) (i64.const 8) (i64.const 0)) (i32.const 4))
		(call $want (i64.const -14) (call $thread (i64.const 0x1000000) (i64.const 5) (i64.const 0) (i64.const -8)) (i32.const 5))
		;; A word to be cleared at an invalid, unaligned address: no effect.
		(call $want (i64.const 1) (i64.extend_i32_u (i64.gt_s (call $thread (i64.const 0x200000) (i64.const 5) (i64.const 0) (i64.const 3)) (i64.const 0))) (i32.const 6))
		(call $want (i64.const 1) (i64.extend_i32_u (i64.gt_s (call $thread (i64.const 0x200000) (i64.const 1) (i64.const 0) (i64.const 0x30ffd)) (i64.const 0))) (i32.const 7))
		(call $until (i32.const 2))
		(loop $more
			(local.set $tid (call $thread (i64.const 0)
				(i64.add (i64.const 2) (i64.and (i64.extend_i32_u (local.get $made)) (i64.const 1))) (i64.const 0) (i64.const 0)))
			(if (i64.gt_s (local.get $tid) (i64.const 0)) (then
				(local.set $made (i32.add (local.get $made) (i32.const 1)))
				;; Most of them sleep: two that spin are enough.
				(if (i32.gt_u (local.get $made) (i32.const 3)) (then (local.set $made (i32.or (local.get $made) (i32.const 1)))))
				(br $more))))
		(call $want (i64.const -11) (local.get $tid) (i32.const 8))
		(call $want (i64.const 1) (i64.extend_i32_u (i32.gt_u (local.get $made) (i32.const 100))) (i32.const 9))
		(call $exit (i32.const 0))))
