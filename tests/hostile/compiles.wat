;; Runs a module that takes minutes to compile, or, without an argument, has six children do so:
;; SIGKILL ends those whose compilation has begun and those whose turn has not come. With two
;; arguments it does that, prints it, and waits for the end of its input.
;; library
(data $slow "/slow.wasm\00")

(func $child
	(memory.init $slow (i32.const 0x11000) (i32.const 0) (i32.const 11))
	(i32.store (i32.const 0x11100) (i32.const 0x11000))
	(i32.store (i32.const 0x11104) (i32.const 0))
	(i32.store (i32.const 0x11108) (i32.const 0))
	(drop (call $s3 (i32.const 59) (i64.const 0x11000) (i64.const 0x11100) (i64.const 0x11108)))
	(call $exit (i32.const 7)))

(func $main (local $number i32)
	(if (i32.eq (i32.load (global.get $block)) (i32.const 2)) (then (call $child)))
	(i32.store (i32.const 0x11000) (i32.load offset=4 (global.get $block)))
	(i32.store (i32.const 0x11004) (i32.const 0x11010))
	(i32.store (i32.const 0x11008) (i32.const 0))
	(i32.store (i32.const 0x11010) (i32.const 49))
	(loop $more
		(i64.store (i32.add (i32.const 0x11100) (local.get $number)) (call $good (call $spawn (i32.const 0x11000))))
		(local.set $number (i32.add (local.get $number) (i32.const 8)))
		(br_if $more (i32.lt_u (local.get $number) (i32.const 48))))
	;; nanosleep, 0.3 s.
	(i64.store (i32.const 0x11200) (i64.const 0))
	(i64.store (i32.const 0x11208) (i64.const 300000000))
	(drop (call $s2 (i32.const 35) (i64.const 0x11200) (i64.const 0)))
	(local.set $number (i32.const 0))
	(loop $more
		(call $want (i64.const 0)
			(call $s2 (i32.const 62) (i64.load (i32.add (i32.const 0x11100) (local.get $number))) (i64.const 9)))
		(call $want (i64.const 9) (call $wait (i64.load (i32.add (i32.const 0x11100) (local.get $number)))))
		(local.set $number (i32.add (local.get $number) (i32.const 8)))
		(br_if $more (i32.lt_u (local.get $number) (i32.const 48))))
	(if (i32.gt_u (i32.load (global.get $block)) (i32.const 2)) (then
		(i32.store8 (i32.const 0x11300) (i32.const 46))
		(call $want (i64.const 1) (call $s3 (i32.const 1) (i64.const 1) (i64.const 0x11300) (i64.const 1)))
		(call $want (i64.const 0) (call $s3 (i32.const 0) (i64.const 0) (i64.const 0x11300) (i64.const 1))))))
