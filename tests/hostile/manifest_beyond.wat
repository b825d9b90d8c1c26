;; A grate that declares one call tries to handle others: at its child's birth, one by one, and all at once.
;; expect: exit 0
;; says: its manifest does not declare getpid
;; grate
(@custom "lind.grate" "observes geteuid\00follows clone\00")
(elem (table $handlers) (i32.const 1) func $beyond)
(global $tried (mut i32) (i32.const 0))

;; As handler of geteuid: registers on the client it is serving.
(func $beyond (param $c i32) (result i64)
	(call $want (i64.const -1) (call $take (local.get $c) (i64.const 39)))
	(call $want (i64.const -1) (call $take (local.get $c) (i64.const 0xffffffff)))
	(call $want (i64.const -1) (call $take (local.get $c) (i64.const 0x10000006b)))
	(call $want (i64.const 0) (call $take (local.get $c) (i64.const 107)))
	(call $want (i64.const 0) (call $take (local.get $c) (i64.const 56)))
	(global.set $tried (i32.const 1))
	(i64.const 7))
(func $take (param $c i32) (param $nr i64) (result i64)
	(call $s5 (i32.const 1001) (i64.load offset=16 (local.get $c)) (local.get $nr) (call $s0 (i32.const 39)) (i64.const 1) (i64.const 0)))

(func $main (local $argv i32)
	(if (i32.gt_u (i32.load (global.get $block)) (i32.const 1)) (then
		;; The child.
		(call $want (i64.const 7) (call $s0 (i32.const 107)))
		(call $exit (i32.const 0))))
	;; argv: our own name twice.
	(i32.store (i32.const 0x11000) (i32.load offset=4 (global.get $block)))
	(i32.store (i32.const 0x11004) (i32.load offset=4 (global.get $block)))
	(call $handle (i32.const 107) (i32.const 1))
	(call $handle (i32.const 39) (i32.const 1))
	(call $want (i64.const -1) (call $spawn_here (i64.const 2)))
	(call $want (i64.const 0) (call $wait (call $good (call $spawn_here (i64.const 1))))))

(func $spawn_here (param $count i64) (result i64)
	(call $s5 (i32.const 1004) (i64.load32_u (i32.const 0x11000)) (i64.const 0x11000) (i64.const 0) (i64.const 0x10900) (local.get $count)))
