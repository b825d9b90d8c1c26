;; Allocates all memory, and splits it into more pieces than allowed: ENOMEM, and after unmapping
;; there is memory again.
;; expect: exit 0
(func $protect (param $at i64) (param $len i64) (param $prot i64) (result i64)
	(call $s3 (i32.const 10) (local.get $at) (local.get $len) (local.get $prot)))
(func $main (local $at i64) (local $from i64) (local $page i64) (local $result i64) (local $break i64)
	(call $want (i64.const -12) (call $map (i64.const 0x100000000) (i64.const 3)))
	;; 3 GiB in one piece, never touched.
	(local.set $at (call $good (call $map (i64.const 0xc0000000) (i64.const 3))))
	(call $want (i64.const -12) (call $map (i64.const 0x40000000) (i64.const 3)))
	(local.set $break (call $s1 (i32.const 12) (i64.const 0)))
	(call $want (local.get $break) (call $s1 (i32.const 12) (i64.const 0xfffe0000)))
	(call $want (local.get $break) (call $s1 (i32.const 12) (i64.const -1)))
	;; Every other page gets another protection, until there are too many pieces.
	(local.set $page (local.get $at))
	(block $full
		(loop $next
			(local.set $result (call $protect (local.get $page) (i64.const 4096) (i64.const 1)))
			(br_if $full (i64.ne (local.get $result) (i64.const 0)))
			(local.set $page (i64.add (local.get $page) (i64.const 8192)))
			(br_if $next (i64.lt_u (local.get $page) (i64.add (local.get $at) (i64.const 0x20000000))))))
	(call $want (i64.const -12) (local.get $result))
	(call $want (i64.const -12) (call $s2 (i32.const 11) (i64.add (local.get $page) (i64.const 0x1000)) (i64.const 4096)))
	;; The contents are still there.
	(i64.store (i32.wrap_i64 (i64.add (local.get $at) (i64.const 4096))) (i64.const 7))
	(call $want (i64.const 0) (i64.load (i32.wrap_i64 (local.get $at))))
	(call $want (i64.const 0) (call $s2 (i32.const 11) (local.get $at) (i64.const 0xc0000000)))
	(call $want (local.get $at) (call $map (i64.const 0xc0000000) (i64.const 3))))
