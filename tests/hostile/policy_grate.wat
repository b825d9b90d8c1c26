;; Tells its client that it is user 4242, and answers its calls of 1002.
;; library
;; grate
(elem (table $handlers) (i32.const 1) func $euid $forward)
(func $euid (param i32) (result i64) (i64.const 4242))
(func $main
	(call $handle (i32.const 107) (i32.const 1))
	(call $handle (i32.const 39) (i32.const 2))
	(call $finish (call $start)))
