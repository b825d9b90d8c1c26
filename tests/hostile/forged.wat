;; Ids of cages that the caller may not name: its parent's memory, descriptors and process, and
;; cages that never existed.
;; expect: exit 0
;; chain: policy_grate
(global $me (mut i64) (i64.const 0))

;; A call on itself, its first three arguments said to belong to these cages.
(func $as (param $nr i32) (param $a i64) (param $of_a i64) (param $b i64) (param $of_b i64) (param $c i64) (param $of_c i64) (result i64)
	(call $call (local.get $nr) (global.get $me) (local.get $a) (local.get $of_a) (local.get $b) (local.get $of_b)
		(local.get $c) (local.get $of_c) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)))

(func $foreign (param $who i64)
	;; write out of its memory, read into it, its path, its descriptor, its directory
	(call $want (i64.const -1) (call $as (i32.const 1)
		(i64.const 2) (global.get $me) (i64.const 0x11000) (local.get $who) (i64.const 8) (global.get $me)))
	(call $want (i64.const -1) (call $as (i32.const 0)
		(i64.const 0) (global.get $me) (i64.const 0x11000) (local.get $who) (i64.const 8) (global.get $me)))
	(call $want (i64.const -1) (call $as (i32.const 2)
		(i64.const 0x11000) (local.get $who) (i64.const 0) (global.get $me) (i64.const 0) (global.get $me)))
	(call $want (i64.const -1) (call $as (i32.const 3)
		(i64.const 1) (local.get $who) (i64.const 0) (global.get $me) (i64.const 0) (global.get $me)))
	(call $want (i64.const -1) (call $as (i32.const 257)
		(i64.const -100) (local.get $who) (i64.const 0x11000) (global.get $me) (i64.const 0) (global.get $me)))
	;; copies both ways
	(call $want (i64.const -1) (call $as (i32.const 1002)
		(i64.const 0x11000) (local.get $who) (i64.const 0x11000) (global.get $me) (i64.const 8) (global.get $me)))
	(call $want (i64.const -1) (call $as (i32.const 1002)
		(i64.const 0x11000) (global.get $me) (i64.const 0x11000) (local.get $who) (i64.const 8) (global.get $me))))

(func $main (local $parent i64)
	(global.set $me (call $good (call $s0 (i32.const 39))))
	(local.set $parent (call $good (call $s0 (i32.const 110))))
	(i32.store (i32.const 0x11000) (i32.const 0x2f))
	(call $foreign (local.get $parent))
	(call $foreign (i64.const 77777))
	(call $foreign (i64.const 0))
	(call $foreign (i64.const -1))
	(call $foreign (i64.or (global.get $me) (i64.const 0x100000000)))
	;; kill, limits and children of others
	(call $want (i64.const -1) (call $s2 (i32.const 62) (local.get $parent) (i64.const 9)))
	(call $want (i64.const -1) (call $s4 (i32.const 302) (local.get $parent) (i64.const 7) (i64.const 0) (i64.const 0x11100)))
	(call $want (i64.const -10) (call $s4 (i32.const 61) (local.get $parent) (i64.const 0) (i64.const 0) (i64.const 0))))
