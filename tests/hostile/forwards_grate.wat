;; Passes call_by on by call_by, and by make_syscall: both have the same result, or the client
;; gets 1.
;; library
;; grate
(elem (table $handlers) (i32.const 1) func $both)
(func $both (param $c i32) (result i64) (local $said i64)
	(local.set $said (call $s1 (i32.const 1007) (i64.const 0)))
	(if (i64.ne (local.get $said) (call $forward (local.get $c))) (then (return (i64.const 1))))
	(local.get $said))
(func $main
	(call $handle (i32.const 1007) (i32.const 1))
	(call $finish (call $start)))
