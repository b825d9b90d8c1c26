;; Reads for its client into a page of its own, which it unmaps and maps meanwhile.
;; library
;; grate
(elem (table $handlers) (i32.const 1) func $pread)
;; pread64, with the buffer in the grate's page: what fitted before the page went, or EFAULT, then a copy out of it to the client.
(func $pread (param $c i32) (result i64) (local $result i64)
	(local.set $result (call $call (i32.const 17) (i64.load offset=16 (local.get $c))
		(i64.load offset=24 (local.get $c)) (i64.load offset=32 (local.get $c))
		(i64.const 0x20000000) (i64.load (i32.const 0x10f00)) (i64.const 4096) (i64.const 0) (i64.const 0) (i64.const 0)
		(i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)))
	(call $some (i64.const 4096) (local.get $result))
	(local.set $result (call $call (i32.const 1002) (i64.load (i32.const 0x10f00))
		(i64.load offset=40 (local.get $c)) (i64.load offset=48 (local.get $c))
		(i64.const 0x20000000) (i64.load (i32.const 0x10f00)) (i64.const 4096) (i64.const 0) (i64.const 0) (i64.const 0)
		(i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)))
	(call $some (i64.const 4096) (local.get $result))
	(local.get $result))
(func $main (local $pid i64)
	;; Workers have globals of their own, and share the memory.
	(i64.store (i32.const 0x10f00) (call $s0 (i32.const 39)))
	(call $handle (i32.const 17) (i32.const 1))
	(local.set $pid (call $start))
	(loop $again
		(drop (call $s6 (i32.const 9)
			(i64.const 0x20000000) (i64.const 4096) (i64.const 3) (i64.const 0x32) (i64.const -1) (i64.const 0)))
		(drop (call $s2 (i32.const 11) (i64.const 0x20000000) (i64.const 4096)))
		;; until the client has ended, waitid would say; wait4 with WNOHANG and its status kept does too
		(br_if $again (i64.eqz (call $s3 (i32.const 61) (local.get $pid) (i64.const 0x100f0) (i64.const 1)))))
	(if (i32.load (i32.const 0x100f0)) (then (call $exit (i32.const 9)))))
