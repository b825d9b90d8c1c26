;; A client gets no other table by running another program, nor by a child that begins with
;; handlers of its own or with earlier ones.
;; expect: exit 0
;; chain: policy_grate
;; grate
(elem (table $handlers) (i32.const 1) func $mine)
(func $mine (param i32) (result i64) (i64.const 0))

(func $arguments (param $count i32)
	(i32.store (i32.const 0x11000) (i32.load offset=4 (global.get $block)))
	(i32.store (i32.const 0x11004) (i32.load offset=4 (global.get $block)))
	(i32.store (i32.const 0x11008) (i32.load offset=4 (global.get $block)))
	(i32.store (i32.const 0x1100c) (i32.load offset=4 (global.get $block)))
	(i32.store (i32.add (i32.const 0x11000) (i32.shl (local.get $count) (i32.const 2))) (i32.const 0)))

;; A child with an entry of its own; two arguments, so that it looks and ends.
(func $child (param $nr i32) (param $entry i32) (result i64)
	(call $arguments (i32.const 2))
	(i32.store (i32.const 0x10900) (local.get $nr))
	(i32.store (i32.const 0x10904) (local.get $entry))
	(call $s5 (i32.const 1004) (i64.load32_u (i32.const 0x11000)) (i64.const 0x11000) (i64.const 0) (i64.const 0x10900) (i64.const 1)))

(func $main (local $argc i32)
	(local.set $argc (i32.load (global.get $block)))
	(if (i32.eq (local.get $argc) (i32.const 1)) (then
		(call $want (i64.const 4242) (call $s0 (i32.const 107)))
		;; As before: the grate's, not the kernel's. For all numbers, for this one.
		(call $want (i64.const 0) (call $wait (call $good (call $child (i32.const 107) (i32.const -1)))))
		(call $want (i64.const 0) (call $wait (call $good (call $child (i32.const -1) (i32.const -1)))))
		;; Another program here, three times.
		(call $arguments (i32.const 3))
		(drop (call $s3 (i32.const 59) (i64.load32_u (i32.const 0x11000)) (i64.const 0x11000) (i64.const 0)))
		(call $exit (i32.const 1))))
	(if (i32.eq (local.get $argc) (i32.const 3)) (then
		(call $want (i64.const 4242) (call $s0 (i32.const 107)))
		(call $arguments (i32.const 4))
		(drop (call $s5 (i32.const 322) (i64.const -100) (i64.load32_u (i32.const 0x11000)) (i64.const 0x11000) (i64.const 0) (i64.const 0)))
		(call $exit (i32.const 1))))
	(call $want (i64.const 4242) (call $s0 (i32.const 107))))
