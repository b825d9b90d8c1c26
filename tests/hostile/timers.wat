;; As many timers as allowed, all of them always due; and timers that are set again, or made and
;; deleted, without end. Used by cases.py: without an argument it does this as long as a child of
;; its own (with one) waits for its own timer repeatedly; with two it sets.
;; library
(func $settime (param $id i32) (param $sec i64) (param $nsec i64)
	(i64.store (i32.const 0x11100) (local.get $sec))
	(i64.store (i32.const 0x11108) (local.get $nsec))
	(i64.store (i32.const 0x11110) (local.get $sec))
	(i64.store (i32.const 0x11118) (local.get $nsec))
	(call $want (i64.const 0) (call $s4 (i32.const 223) (i64.extend_i32_u (local.get $id)) (i64.const 0) (i64.const 0x11100) (i64.const 0))))

;; The id of a new one, of the monotonic clock, that sends SIGALRM; or an errno.
(func $create (result i64) (local $result i64)
	(local.set $result (call $s3 (i32.const 222) (i64.const 1) (i64.const 0) (i64.const 0x11000)))
	(if (i64.eqz (local.get $result)) (then (return (i64.load32_u (i32.const 0x11000)))))
	(local.get $result))

(func $hammer (local $id i64) (local $count i32)
	(loop $more
		(local.set $id (call $create))
		(if (i64.ge_s (local.get $id) (i64.const 0)) (then
			(call $settime (i32.wrap_i64 (local.get $id)) (i64.const 0) (i64.const 1))
			(local.set $count (i32.add (local.get $count) (i32.const 1)))
			(br $more))))
	(call $want (i64.const -11) (local.get $id))
	(call $want (i64.const 1024) (i64.extend_i32_u (local.get $count)))
	(i32.store (i32.const 0x11200) (i32.load offset=4 (global.get $block)))
	(i32.store (i32.const 0x11204) (i32.load offset=4 (global.get $block)))
	(i32.store (i32.const 0x11208) (i32.const 0))
	(call $want (i64.const 0) (call $wait (call $good (call $spawn (i32.const 0x11200))))))

;; A hundred times 20 ms, by a timer that is set each time: each signal comes, and none much later.
(func $beside (local $left i32)
	(i64.store (i32.const 0x11300) (i64.const 0x2000))
	(i64.store (i32.const 0x11310) (i64.const 10))
	(i64.store (i32.const 0x11318) (i64.const 0))
	(local.set $left (i32.const 100))
	(loop $next
		(i64.store (i32.const 0x11100) (i64.const 0))
		(i64.store (i32.const 0x11108) (i64.const 0))
		(i64.store (i32.const 0x11110) (i64.const 0))
		(i64.store (i32.const 0x11118) (i64.const 20000))
		(call $want (i64.const 0) (call $s3 (i32.const 38) (i64.const 0) (i64.const 0x11100) (i64.const 0)))
		(call $want (i64.const 14) (call $s4 (i32.const 128) (i64.const 0x11300) (i64.const 0) (i64.const 0x11310) (i64.const 8)))
		(br_if $next (local.tee $left (i32.sub (local.get $left) (i32.const 1))))))

(func $set (local $left i32) (local $id i64)
	(local.set $id (call $good (call $create)))
	(local.set $left (i32.const 2000000))
	(loop $next
		(call $settime (i32.wrap_i64 (local.get $id)) (i64.add (i64.const 1000000) (i64.extend_i32_u (local.get $left))) (i64.const 0))
		(br_if $next (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
	(local.set $left (i32.const 1000000))
	(loop $other
		(local.set $id (call $good (call $create)))
		(call $settime (i32.wrap_i64 (local.get $id)) (i64.add (i64.const 1000000) (i64.extend_i32_u (local.get $left))) (i64.const 0))
		(call $want (i64.const 0) (call $s1 (i32.const 226) (local.get $id)))
		(br_if $other (local.tee $left (i32.sub (local.get $left) (i32.const 1))))))

(func $main (local $arguments i32)
	;; SIGALRM waits.
	(i64.store (i32.const 0x11000) (i64.const 0x2000))
	(call $want (i64.const 0) (call $s4 (i32.const 14) (i64.const 0) (i64.const 0x11000) (i64.const 0) (i64.const 8)))
	(local.set $arguments (i32.load (global.get $block)))
	(if (i32.eq (local.get $arguments) (i32.const 1)) (then (call $hammer)))
	(if (i32.eq (local.get $arguments) (i32.const 2)) (then (call $beside)))
	(if (i32.eq (local.get $arguments) (i32.const 3)) (then (call $set))))
