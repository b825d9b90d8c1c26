;; The program that exec_grate runs: it has handlers too, at the same places.
;; library
;; grate
(elem (table $handlers) (i32.const 1) func $wrong $wrong $wrong)
(func $wrong (param i32) (result i64) (i64.const 99))
(func $main (local $at i32)
	;; The old program wrote here.
	(drop (call $good (call $s1 (i32.const 12) (i64.const 0x40000))))
	(call $want (i64.const 0) (i64.load (i32.const 0x20000)))
	;; It is not a grate any more.
	(call $handle (i32.const 107) (i32.const 1))
	(call $want (i64.const -1) (call $s5 (i32.const 1004) (i64.load32_u offset=4 (global.get $block))
		(i64.extend_i32_u (i32.add (global.get $block) (i32.const 4))) (i64.const 0) (i64.const 0x10900) (i64.const 1)))
	(call $want (i64.const -1) (call $s1 (i32.const 1005) (i64.const 1)))
	(call $finish (i64.const -1)))
