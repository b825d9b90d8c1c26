;; Has a child run a module whose compilation needs more memory than there is: the child gets
;; ENOMEM, and nobody else is harmed.
;; library
(data $slow "/slow.wasm\00")

(func $child
	(memory.init $slow (i32.const 0x11000) (i32.const 0) (i32.const 11))
	(i32.store (i32.const 0x11100) (i32.const 0x11000))
	(i32.store (i32.const 0x11104) (i32.const 0))
	(i32.store (i32.const 0x11108) (i32.const 0))
	(call $want (i64.const -12)
		(call $s3 (i32.const 59) (i64.const 0x11000) (i64.const 0x11100) (i64.const 0x11108)))
	(call $exit (i32.const 12)))

(func $main
	(if (i32.gt_u (i32.load (global.get $block)) (i32.const 1)) (then (call $child)))
	(i32.store (i32.const 0x11000) (i32.load offset=4 (global.get $block)))
	(i32.store (i32.const 0x11004) (i32.const 0x11010))
	(i32.store (i32.const 0x11008) (i32.const 0))
	(i32.store (i32.const 0x11010) (i32.const 49))
	(call $want (i64.const 0xc00) (call $wait (call $good (call $spawn (i32.const 0x11000))))))
