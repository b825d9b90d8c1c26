;; Calls that only grates of the command line may make, by another program: the runner's files,
;; and reports of denials that nobody reads.
;; expect: exit 0
(func $main
	(call $want (i64.const -1) (call $s1 (i32.const 1011) (i64.const 0)))
	(call $want (i64.const -1) (call $s1 (i32.const 1011) (i64.const -1)))
	(call $want (i64.const -1) (call $s1 (i32.const 1011) (i64.const 0x100000000)))
	(call $want (i64.const -95) (call $s5 (i32.const 1012)
		(i64.const 1) (i64.const 2) (i64.const 13) (i64.const 0x11000) (i64.const 16)))
	(call $want (i64.const -95) (call $s5 (i32.const 1012)
		(i64.const -1) (i64.const -1) (i64.const -1) (i64.const -1) (i64.const -1)))
	(call $want (i64.const -95) (call $s5 (i32.const 1012)
		(i64.const 1) (i64.const 2) (i64.const 13) (i64.const 8) (i64.const 0x7fffffffffffffff))))
