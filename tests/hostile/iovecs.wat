;; Vectors that are too many, not aligned, at the edge, or claim to hold everything.
;; expect: exit 0
;; file: data 10000
(data $path "/data\00")

(func $iovec (param $at i32) (param $base i32) (param $len i32)
	(i32.store (local.get $at) (local.get $base))
	(i32.store offset=4 (local.get $at) (local.get $len)))

(func $both (param $wanted i64) (param $at i64) (param $count i64)
	(call $want (local.get $wanted) (call $s3 (i32.const 19) (i64.const 9) (local.get $at) (local.get $count)))
	(call $want (local.get $wanted) (call $s3 (i32.const 20) (i64.const 9) (local.get $at) (local.get $count)))
	(call $want (local.get $wanted) (call $s4 (i32.const 295) (i64.const 9) (local.get $at) (local.get $count) (i64.const 0)))
	(call $want (local.get $wanted) (call $s4 (i32.const 296) (i64.const 9) (local.get $at) (local.get $count) (i64.const 0))))

(func $main (local $i i32)
	(memory.init $path (i32.const 0x11000) (i32.const 0) (i32.const 6))
	(call $want (i64.const 9) (call $s2 (i32.const 33)
		(call $good (call $s3 (i32.const 2) (i64.const 0x11000) (i64.const 2) (i64.const 0))) (i64.const 9)))
	(call $both (i64.const -22) (i64.const 0x12000) (i64.const 1025))
	(call $both (i64.const -22) (i64.const 0x12000) (i64.const -1))
	(call $both (i64.const -22) (i64.const 0x12000) (i64.const 0x7fffffff))
	(call $both (i64.const 0) (i64.const 1) (i64.const 0))
	(call $both (i64.const -14) (i64.const 0x1fffc) (i64.const 1))
	(call $both (i64.const -14) (i64.const 0xfffffffc) (i64.const 2))
	(call $both (i64.const -14) (i64.const 0x100012000) (i64.const 1))
	;; A thousand vectors of everything: more bytes than a result can say, and none of them there.
	(loop $next
		(call $iovec (i32.add (i32.const 0x12000) (i32.shl (local.get $i) (i32.const 3))) (i32.const 0) (i32.const -1))
		(local.set $i (i32.add (local.get $i) (i32.const 1)))
		(br_if $next (i32.lt_u (local.get $i) (i32.const 1024))))
	(call $refused (i64.const 1024))
	(call $refused (i64.const 1))
	;; Base and length that wrap.
	(call $iovec (i32.const 0x12000) (i32.const 0x11000) (i32.const 0xffff0000))
	(call $refused (i64.const 1))
	(call $iovec (i32.const 0x12000) (i32.const 0xffffffff) (i32.const 0xffffffff))
	(call $refused (i64.const 1))
	;; Neither array nor buffer need be aligned.
	(call $iovec (i32.const 0x12001) (i32.const 0x13003) (i32.const 5))
	(call $want (i64.const 5) (call $s4 (i32.const 295) (i64.const 9) (i64.const 0x12001) (i64.const 1) (i64.const 0)))
	;; The first is good and the second is not: what was read counts.
	(call $iovec (i32.const 0x12000) (i32.const 0x13000) (i32.const 5))
	(call $iovec (i32.const 0x12008) (i32.const 0x40000000) (i32.const 5))
	(call $want (i64.const 5) (call $s4 (i32.const 295) (i64.const 9) (i64.const 0x12000) (i64.const 2) (i64.const 0))))

;; EFAULT or EINVAL, as the host finds the pointer or the sum first.
(func $refused (param $count i64) (local $result i64)
	(local.set $result (call $s3 (i32.const 19) (i64.const 9) (i64.const 0x12000) (local.get $count)))
	(if (i64.ne (local.get $result) (i64.const -22)) (then (call $want (i64.const -14) (local.get $result))))
	(local.set $result (call $s3 (i32.const 20) (i64.const 9) (i64.const 0x12000) (local.get $count)))
	(if (i64.ne (local.get $result) (i64.const -22)) (then (call $want (i64.const -14) (local.get $result)))))
