;; The host runs out of descriptors: EMFILE, until some are closed.
;; library
(data $path "/data\00")
(func $fill (result i64) (local $fd i64) (local $count i64)
	(loop $next
		(local.set $fd (call $s3 (i32.const 2) (i64.const 0x11000) (i64.const 0) (i64.const 0)))
		(if (i64.ge_s (local.get $fd) (i64.const 0)) (then
			(local.set $count (i64.add (local.get $count) (i64.const 1)))
			(br $next))))
	(call $want (i64.const -24) (local.get $fd))
	(local.get $count))
(func $main (local $count i64)
	(memory.init $path (i32.const 0x11000) (i32.const 0) (i32.const 6))
	(local.set $count (call $fill))
	(if (i64.gt_u (local.get $count) (i64.const 200)) (then (call $exit (i32.const 9))))
	;; No room to load a program either.
	(i32.store (i32.const 0x11100) (i32.load offset=4 (global.get $block)))
	(i32.store (i32.const 0x11104) (i32.const 0))
	(call $want (i64.const -24) (call $spawn (i32.const 0x11100)))
	(call $want (i64.const 0) (call $s3 (i32.const 436) (i64.const 3) (i64.const 0xffffffff) (i64.const 0)))
	(call $want (local.get $count) (call $fill)))
