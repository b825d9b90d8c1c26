;; Recursion without end.
;; expect: signal 11
(func $deeper (param i64) (result i64)
	(i64.add (call $deeper (i64.add (local.get 0) (i64.const 1))) (local.get 0)))
(func $main (drop (call $deeper (i64.const 0))))
