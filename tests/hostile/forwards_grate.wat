;; Passes forward on by forward, and call_by by make_syscall.
;; library
;; grate
(elem (table $handlers) (i32.const 1) func $again $forward)
(func $again (param i32) (result i64) (call $s0 (i32.const 1006)))
(func $main
	(call $handle (i32.const 1006) (i32.const 1))
	(call $handle (i32.const 1007) (i32.const 2))
	(call $finish (call $start)))
