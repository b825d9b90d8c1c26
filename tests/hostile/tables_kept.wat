;; Tables that grow and are kept while the program waits: a grate sees them as memory.
;; behind: resource_grate --memory 20M
;; expect: signal 9
;; says: limit memory
;; alone: the limit is that of one run
(table $a 0 1048576 funcref) (table $b 0 1048576 funcref) (table $c 0 1048576 funcref) (table $d 0 1048576 funcref)
(func $main
	(drop (table.grow $a (ref.null func) (i32.const 1048576)))
	(drop (table.grow $b (ref.null func) (i32.const 1048576)))
	(drop (table.grow $c (ref.null func) (i32.const 1048576)))
	(drop (table.grow $d (ref.null func) (i32.const 1048576)))
	;; poll of nothing, for as long as a grate may need to look.
	(drop (call $s3 (i32.const 7) (i64.const 0) (i64.const 0) (i64.const 20000)))
	(call $exit (i32.const 1)))
