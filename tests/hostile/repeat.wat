;; Not a test: starts the program its arguments name once for every byte of standard input, waits for it, and answers with
;; a byte. Exits with 2 if it ends otherwise than the first time, with 3 if cages are left over.
;; library
(global $first (mut i64) (i64.const -1))
(func $cages (result i64)
	(call $want (i64.const 0) (call $s1 (i32.const 99) (i64.const 0x10800)))
	(i64.load16_u offset=80 (i32.const 0x10800)))
(func $main (local $status i64) (local $cages i64)
	(local.set $cages (call $cages))
	(block $end
		(loop $next
			(br_if $end (i64.ne (call $s3 (i32.const 0) (i64.const 0) (i64.const 0x10400) (i64.const 1)) (i64.const 1)))
			(local.set $status (call $wait (call $good (call $spawn (i32.add (global.get $block) (i32.const 8))))))
			(if (i64.eq (global.get $first) (i64.const -1)) (then (global.set $first (local.get $status))))
			(if (i64.ne (global.get $first) (local.get $status)) (then (call $exit (i32.const 2))))
			(if (i64.ne (local.get $cages) (call $cages)) (then (call $exit (i32.const 3))))
			(drop (call $s3 (i32.const 1) (i64.const 1) (i64.const 0x10400) (i64.const 1)))
			(br $next))))
