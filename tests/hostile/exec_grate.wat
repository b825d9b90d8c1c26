;; Runs another program as soon as one of its handlers is in use.
;; library
;; grate
(elem (table $handlers) (i32.const 1) func $answer $never $forward)
(data $next "/exec_next.wasm\00")
(func $answer (param i32) (result i64) (i64.const 42))
;; Says that it runs, and computes for ever.
(func $never (param i32) (result i64)
	(i64.store (i32.const 0x20000) (i64.const 1))
	(loop $again
		(i64.store (i32.const 0x20008) (i64.add (i64.load (i32.const 0x20008)) (i64.const 1)))
		(br $again))
	unreachable)
(func $main
	(drop (call $good (call $s1 (i32.const 12) (i64.const 0x40000))))
	(call $handle (i32.const 107) (i32.const 1))
	(call $handle (i32.const 39) (i32.const 2))
	(call $handle (i32.const 231) (i32.const 3))
	(drop (call $start))
	(loop $wait
		(drop (call $s0 (i32.const 24)))
		(br_if $wait (i64.eqz (i64.load (i32.const 0x20000)))))
	(memory.init $next (i32.const 0x20100) (i32.const 0) (i32.const 16))
	(i32.store (i32.const 0x20200) (i32.const 0x20100))
	(i32.store (i32.const 0x20204) (i32.const 0))
	(call $want (i64.const 0) (call $s3 (i32.const 59) (i64.const 0x20100) (i64.const 0x20200) (i64.const 0))))
