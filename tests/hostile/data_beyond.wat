;; A data image with pages beyond the declared data: nothing is mapped there.
;; expect: signal 11
(global (export "__heap_base") i32 (i32.const 0x20000))
(data $a "aaaaaaaaaaaaaaaa")
(func $init
	(block $over (block $wait (block $turn
		(br_table $turn $wait $over (i32.atomic.rmw.cmpxchg (i32.const 0x12000) (i32.const 0) (i32.const 1))))
		(memory.fill (i32.const 0x10000) (i32.const 0) (i32.const 0x9000))
		(memory.init $a (i32.const 0x1fff8) (i32.const 0) (i32.const 16))
		(i32.atomic.store (i32.const 0x12000) (i32.const 2))
		(drop (memory.atomic.notify (i32.const 0x12000) (i32.const -1)))
		(br $over))
		(drop (memory.atomic.wait32 (i32.const 0x12000) (i32.const 1) (i64.const -1))))
	(data.drop $a))
(start $init)
(func $main)
