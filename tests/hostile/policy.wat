;; A client tries to remove, replace and bypass its grate, and its child after it.
;; expect: exit 0
;; chain: policy_grate
;; grate
(elem (table $handlers) (i32.const 1) func $mine)
(func $mine (param i32) (result i64) (i64.const 0))
(global $me (mut i64) (i64.const 0))
(global $parent (mut i64) (i64.const 0))

(func $register (param $target i64) (param $nr i64) (param $grate i64) (param $entry i64) (param $flags i64) (result i64)
	(call $s5 (i32.const 1001) (local.get $target) (local.get $nr) (local.get $grate) (local.get $entry) (local.get $flags)))

;; By the import, and by make_syscall on itself with every id it likes.
(func $refused (param $target i64) (param $nr i64) (param $grate i64) (param $entry i64) (param $flags i64)
	(call $want (i64.const -1) (call $register
		(local.get $target) (local.get $nr) (local.get $grate) (local.get $entry) (local.get $flags)))
	(call $want (i64.const -1) (call $call (i32.const 1001) (global.get $me)
		(local.get $target) (global.get $parent) (local.get $nr) (global.get $me) (local.get $grate) (i64.const 0)
		(local.get $entry) (i64.const -1) (local.get $flags) (global.get $me) (i64.const 0) (global.get $me)))
	(call $want (i64.const 4242) (call $s0 (i32.const 107))))

(func $main
	(global.set $me (call $good (call $s0 (i32.const 39))))
	(global.set $parent (call $good (call $s0 (i32.const 110))))
	(call $want (i64.const 4242) (call $s0 (i32.const 107)))
	(call $refused (global.get $me) (i64.const 107) (global.get $me) (i64.const 1) (i64.const 0))
	(call $refused (global.get $me) (i64.const 107) (global.get $parent) (i64.const 2) (i64.const 0))
	(call $refused (global.get $me) (i64.const 107) (global.get $me) (i64.const 0) (i64.const 2))
	(call $refused (global.get $me) (i64.const 0xffffffff) (global.get $me) (i64.const 1) (i64.const 0))
	(call $refused (global.get $me) (i64.const 0xffffffff) (global.get $me) (i64.const 0) (i64.const 2))
	(call $refused (global.get $parent) (i64.const 107) (global.get $me) (i64.const 1) (i64.const 0))
	(call $refused (global.get $parent) (i64.const 107) (global.get $parent) (i64.const 2) (i64.const 0))
	;; The same number with bits above those of a number is another number.
	(call $refused (global.get $me) (i64.const 0x10000006b) (global.get $me) (i64.const 1) (i64.const 0))
	(call $want (i64.const 4242) (call $s0 (i32.const 107)))
	;; Whole tables.
	(call $want (i64.const -1) (call $s2 (i32.const 1003) (global.get $me) (global.get $me)))
	(call $want (i64.const -1) (call $s2 (i32.const 1003) (global.get $parent) (global.get $me)))
	(call $want (i64.const -1) (call $s2 (i32.const 1003) (global.get $me) (global.get $parent)))
	(call $want (i64.const -3) (call $s2 (i32.const 1003) (i64.const 77777) (global.get $me)))
	;; make_syscall goes by the caller's own table, whoever is named.
	(call $want (i64.const 4242) (call $on (i32.const 107) (global.get $me)))
	(call $want (i64.const -1) (call $on (i32.const 107) (global.get $parent)))
	(call $want (i64.const -3) (call $on (i32.const 107) (i64.const 0)))
	(call $want (i64.const -3) (call $on (i32.const 107) (i64.const -1)))
	;; Nor does call_by go by a table that is not below it.
	(call $want (i64.const 4242) (call $by (global.get $me) (global.get $me)))
	(call $want (i64.const -1) (call $by (global.get $parent) (global.get $me)))
	(call $want (i64.const -1) (call $by (global.get $parent) (global.get $parent)))
	(call $want (i64.const -1) (call $by (global.get $me) (global.get $parent)))
	(call $want (i64.const -3) (call $by (i64.const 0) (global.get $me)))
	(call $want (i64.const -3) (call $by (i64.const -1) (global.get $me)))
	(call $want (i64.const -3) (call $by (i64.const 77777) (global.get $me)))
	(call $want (i64.const -3) (call $by (global.get $me) (i64.const 77777)))
	;; A child has the same table, whoever starts it.
	(if (i32.le_u (i32.load (global.get $block)) (i32.const 1)) (then
		(i32.store (i32.const 0x11000) (i32.load offset=4 (global.get $block)))
		(i32.store (i32.const 0x11004) (i32.load offset=4 (global.get $block)))
		(i32.store (i32.const 0x11008) (i32.const 0))
		(call $want (i64.const 0) (call $wait (call $good (call $spawn (i32.const 0x11000)))))))
	(call $want (i64.const 4242) (call $s0 (i32.const 107))))

(func $by (param $table i64) (param $target i64) (result i64)
	(i64.store (i32.const 0x12000) (i64.const 107))
	(i64.store (i32.const 0x12008) (local.get $table))
	(i64.store (i32.const 0x12010) (local.get $target))
	(call $s1 (i32.const 1007) (i64.const 0x12000)))

(func $on (param $nr i32) (param $target i64) (result i64)
	(call $call (local.get $nr) (local.get $target)
		(i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)
		(i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)))
