;; Passes getuid on by call_by, as a call of its client.
;; library
;; grate
(elem (table $handlers) (i32.const 1) func $as_client)
(func $as_client (param $c i32) (result i64) (local $who i64)
	(local.set $who (i64.load offset=16 (local.get $c)))
	(call $call (i32.const 1007) (local.get $who)
		(i64.const 0) (local.get $who) (i64.const 0) (local.get $who) (i64.const 0) (local.get $who)
		(i64.const 0) (local.get $who) (i64.const 0) (local.get $who) (i64.const 0) (local.get $who)))
(func $main
	(call $handle (i32.const 102) (i32.const 1))
	(call $finish (call $start)))
