;; A child that keeps handlers from running, by the import for functions that call setjmp, and
;; then calls nothing any more: it stops, and a signal without a handler and SIGKILL end it.
;; expect: exit 0
(func $poll (export "__lind_poll"))
(func $spin (call $poll) (loop $turn (br $turn)))

(func $pause (i64.store (i32.const 0x11200) (i64.const 0)) (i64.store (i32.const 0x11208) (i64.const 20000000))
	(drop (call $s2 (i32.const 35) (i64.const 0x11200) (i64.const 0))))

;; Of which the child learns that it is to spin.
(func $child (result i64)
	(i32.store (i32.const 0x11000) (i32.load offset=4 (global.get $block)))
	(i32.store (i32.const 0x11004) (i32.const 0x11100))
	(i32.store (i32.const 0x11008) (i32.const 0))
	(i32.store (i32.const 0x11100) (i32.const 49))
	(call $good (call $spawn (i32.const 0x11000))))

(func $send (param $pid i64) (param $signal i64)
	(call $want (i64.const 0) (call $s2 (i32.const 62) (local.get $pid) (local.get $signal))))

(func $end (param $signal i64) (local $pid i64)
	(local.set $pid (call $child))
	(call $pause)
	;; SIGSTOP; wait4 with WUNTRACED says so.
	(call $send (local.get $pid) (i64.const 19))
	(call $want (local.get $pid) (call $s3 (i32.const 61) (local.get $pid) (i64.const 0x100f0) (i64.const 2)))
	(call $want (i64.const 0x137f) (i64.load32_u (i32.const 0x100f0)))
	(call $send (local.get $pid) (i64.const 18))
	(call $pause)
	(call $send (local.get $pid) (local.get $signal))
	(call $want (local.get $signal) (call $wait (local.get $pid))))

(func $main
	(if (i32.gt_u (i32.load (global.get $block)) (i32.const 1)) (then (call $spin)))
	(call $end (i64.const 15))
	(call $end (i64.const 9)))
