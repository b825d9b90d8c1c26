;; A start function as the linker writes it, but for segments that overlap, fillings with other
;; bytes than zeroes, and empty ones anywhere: memory and the global are as if the function had
;; been run.
;; expect: exit 0
(global $tls (export "__tls_base") (mut i32) (i32.const 5))
(data $a "aaaaaaaaaaaaaaaa") (data $b "bbbb") (data $none "")
(func $init
	(block $over (block $wait (block $turn
		(br_table $turn $wait $over (i32.atomic.rmw.cmpxchg (i32.const 0x12000) (i32.const 0) (i32.const 1))))
		(memory.fill (i32.const 0x10000) (i32.const 0) (i32.const 0x9000))
		(global.set $tls (i32.const 0x11000))
		(memory.init $a (i32.const 0x11000) (i32.const 0) (i32.const 16))
		(memory.init $b (i32.const 0x11004) (i32.const 0) (i32.const 4))
		(memory.init $b (i32.const 0x10ffe) (i32.const 0) (i32.const 3))
		(memory.fill (i32.const 0x1100e) (i32.const 0x1ff) (i32.const 1))
		(memory.fill (i32.const 0x1100f) (i32.const 0) (i32.const 0x800))
		(memory.init $none (i32.const 0x11000) (i32.const 0) (i32.const 0))
		(memory.fill (i32.const 0x11000) (i32.const 7) (i32.const 0))
		(i32.atomic.store (i32.const 0x12000) (i32.const 2))
		(drop (memory.atomic.notify (i32.const 0x12000) (i32.const -1)))
		(br $over))
		(drop (memory.atomic.wait32 (i32.const 0x12000) (i32.const 1) (i64.const -1))))
	(data.drop $a))
(start $init)
(func $main
	(call $want (i64.const 0x6262000000000000) (i64.load (i32.const 0x10ff8)))
	(call $want (i64.const 0x6262626261616162) (i64.load (i32.const 0x11000)))
	(call $want (i64.const 0x00ff616161616161) (i64.load (i32.const 0x11008)))
	(call $want (i64.const 0) (i64.load (i32.const 0x11010)))
	(call $want (i64.const 2) (i64.load (i32.const 0x12000)))
	(call $want (i64.const 0x11000) (i64.extend_i32_u (global.get $tls))))
