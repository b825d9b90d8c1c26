;; Another thread changes the length of a buffer while it is written under RLIMIT_FSIZE: the
;; measured length is the written one.
;; whole
;; expect: exit 0
(module
	(import "lind" "syscall" (func $syscall (param i32 i64 i64 i64 i64 i64 i64) (result i64)))
	(memory (export "memory") 65536 65536)
	(data $path "/limited\00")
	(func $s5 (param i32 i64 i64 i64 i64 i64) (result i64) (call $syscall (local.get 0)
		(local.get 1) (local.get 2) (local.get 3) (local.get 4) (local.get 5) (i64.const 0)))
	(func $exit (param i32)
		(drop (call $s5 (i32.const 231) (i64.extend_i32_u (local.get 0)) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)))
		unreachable)

	;; The length is 50 and 5000 by turns.
	(func (export "__lind_thread_start") (param $block i32)
		(loop $again
			(i32.atomic.store (i32.const 0x20004) (i32.const 50))
			(i32.atomic.store (i32.const 0x20008) (i32.const 1))
			(i32.atomic.store (i32.const 0x20004) (i32.const 5000))
			(br $again)))

	;; No file may be longer than 100 bytes, whichever call writes it.
	(func $check (param $fd i64) (param $number i32) (param $offset i64) (param $status i32)
		(drop (call $s5 (i32.const 77) (local.get $fd) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)))
		(drop (call $s5 (i32.const 8) (local.get $fd) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)))
		(drop (call $s5 (local.get $number) (local.get $fd) (i64.const 0x20000) (i64.const 1) (local.get $offset) (i64.const 0)))
		(if (i64.gt_u (call $s5 (i32.const 8) (local.get $fd) (i64.const 0) (i64.const 2) (i64.const 0) (i64.const 0)) (i64.const 100))
			(then (call $exit (local.get $status)))))

	(func (export "_start") (param i32) (local $fd i64) (local $left i32)
		(drop (call $s5 (i32.const 12) (i64.const 0x40000) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)))
		(memory.init $path (i32.const 0x21000) (i32.const 0) (i32.const 9))
		(local.set $fd (call $s5 (i32.const 2) (i64.const 0x21000) (i64.const 0x242) (i64.const 0x1b6) (i64.const 0) (i64.const 0)))
		(if (i64.lt_s (local.get $fd) (i64.const 0)) (then (call $exit (i32.const 2))))
		;; SIGXFSZ is blocked.
		(i64.store (i32.const 0x22000) (i64.const 0x1000000))
		(drop (call $s5 (i32.const 14) (i64.const 0) (i64.const 0x22000) (i64.const 0) (i64.const 8) (i64.const 0)))
		(i64.store (i32.const 0x22000) (i64.const 100))
		(i64.store (i32.const 0x22008) (i64.const 100))
		(if (i64.ne (i64.const 0) (call $s5 (i32.const 160) (i64.const 1) (i64.const 0x22000) (i64.const 0) (i64.const 0) (i64.const 0)))
			(then (call $exit (i32.const 3))))
		(i32.store (i32.const 0x20000) (i32.const 0x30000))
		;; CLONE_VM | FS | FILES | SIGHAND | THREAD.
		(if (i64.le_s (call $s5 (i32.const 56) (i64.const 0x10f00) (i64.const 4) (i64.const 0) (i64.const 0) (i64.const 0)) (i64.const 0))
			(then (call $exit (i32.const 4))))
		(loop $wait
			(drop (call $s5 (i32.const 24) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)))
			(br_if $wait (i32.eqz (i32.atomic.load (i32.const 0x20008)))))
		(local.set $left (i32.const 4000))
		(loop $again
			(call $check (local.get $fd) (i32.const 20) (i64.const 0) (i32.const 5))
			(call $check (local.get $fd) (i32.const 296) (i64.const 0) (i32.const 6))
			(call $check (local.get $fd) (i32.const 328) (i64.const -1) (i32.const 7))
			(br_if $again (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
		(call $exit (i32.const 0))))
