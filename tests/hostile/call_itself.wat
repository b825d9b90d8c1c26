;; Calls that make calls describe themselves, and each other.
;; expect: exit 0
;; chain: forwards_grate asks_grate
(func $describe (param $nr i32) (param $me i64) (param $value i64) (local $at i32)
	(i32.store (i32.const 0x12000) (local.get $nr))
	(i64.store (i32.const 0x12008) (local.get $me))
	(i64.store (i32.const 0x12010) (local.get $me))
	(local.set $at (i32.const 0x12018))
	(loop $next
		(i64.store (local.get $at) (local.get $value))
		(i64.store offset=8 (local.get $at) (local.get $me))
		(local.set $at (i32.add (local.get $at) (i32.const 16)))
		(br_if $next (i32.lt_u (local.get $at) (i32.const 0x12078)))))
(func $main (local $me i64)
	(local.set $me (call $good (call $s0 (i32.const 39))))
	;; By its own table, and so through the grate's handler of call_by.
	(call $describe (i32.const 1007) (local.get $me) (i64.const 0x12000))
	(call $want (i64.const -40) (call $s1 (i32.const 1007) (i64.const 0x12000)))
	(call $describe (i32.const 1007) (local.get $me) (i64.const 0))
	(call $want (i64.const -40) (call $s1 (i32.const 1007) (i64.const 0x12000)))
	(call $describe (i32.const 39) (local.get $me) (i64.const 0x12000))
	(call $want (local.get $me) (call $s1 (i32.const 1007) (i64.const 0x12000)))
	(call $want (local.get $me) (call $s2 (i32.const 1007) (i64.const 0x12000) (local.get $me)))
	(call $want (i64.const -3) (call $s2 (i32.const 1007) (i64.const 0x12000) (i64.const 77777)))
	;; The call that it serves, which it does not: no handler learns of that.
	(call $want (i64.const -22) (call $s1 (i32.const 1007) (i64.const 0)))
	(call $want (i64.const -22) (call $call (i32.const 1007) (local.get $me)
		(i64.const 0) (local.get $me) (i64.const 0) (local.get $me) (i64.const 0) (local.get $me)
		(i64.const 0) (local.get $me) (i64.const 0) (local.get $me) (i64.const 0) (local.get $me)))
	;; A grate behind such a handler passes this on by call_by, made on behalf of the client.
	(call $want (call $s0 (i32.const 107)) (call $s0 (i32.const 102))))
