;; Lengths that wrap, pieces and numbers that do not exist, for the resource grate: errnos, and
;; the limit holds to the byte.
;; expect: exit 0
;; alone: the line is found by names, which only the runner's own is
;; behind: resource_grate --write-bytes file=4096 --memory 512M --files 40
(data $path "/lies\00")

(func $errno (param $got i64)
	(global.set $checks (i32.add (global.get $checks) (i32.const 1)))
	(if (i32.or (i64.ge_s (local.get $got) (i64.const 0)) (i64.lt_s (local.get $got) (i64.const -4095)))
		(then (call $differ (i64.const -1) (local.get $got)))))

;; One or two pieces at 0x13000, by writev, pwritev and pwritev2.
(func $pieces (param $fd i64) (param $at i64) (param $count i64)
	(call $errno (call $s3 (i32.const 20) (local.get $fd) (local.get $at) (local.get $count)))
	(call $errno (call $s5 (i32.const 296) (local.get $fd) (local.get $at) (local.get $count) (i64.const 0) (i64.const 0)))
	(call $errno (call $s6 (i32.const 328) (local.get $fd) (local.get $at) (local.get $count) (i64.const 0) (i64.const 0) (i64.const 0))))

(func $main (local $fd i64) (local $sum i64) (local $got i64)
	(memory.init $path (i32.const 0x11000) (i32.const 0) (i32.const 6))
	(local.set $fd (call $good (call $s3 (i32.const 2) (i64.const 0x11000) (i64.const 0x242) (i64.const 0x1a4))))
	;; Nothing of this is written, so nothing of it counts.
	(call $errno (call $s3 (i32.const 1) (local.get $fd) (i64.const 1) (i64.const 64)))
	(call $errno (call $s3 (i32.const 1) (local.get $fd) (i64.const 1) (i64.const -1)))
	(call $errno (call $s3 (i32.const 1) (i64.const -1) (i64.const 0x11000) (i64.const -1)))
	(call $errno (call $s3 (i32.const 1) (i64.const 0x7fffffff) (i64.const 0x11000) (i64.const 1)))
	(call $errno (call $s4 (i32.const 18) (local.get $fd) (i64.const 0x11000) (i64.const 1) (i64.const -1)))
	(call $errno (call $s4 (i32.const 18) (local.get $fd) (i64.const 1) (i64.const 1) (i64.const 0)))
	(call $pieces (local.get $fd) (i64.const 1) (i64.const 1))
	(call $pieces (local.get $fd) (i64.const 0x13000) (i64.const -1))
	(call $pieces (local.get $fd) (i64.const 0x13000) (i64.const 0x80000000))
	(call $pieces (local.get $fd) (i64.const 0xfffffff8) (i64.const 1024))
	(i32.store (i32.const 0x13000) (i32.const 1))
	(i32.store (i32.const 0x13004) (i32.const 64))
	(call $pieces (local.get $fd) (i64.const 0x13000) (i64.const 1))
	(call $errno (call $s4 (i32.const 40) (local.get $fd) (local.get $fd) (i64.const 1) (i64.const -1)))
	(call $errno (call $s6 (i32.const 326) (local.get $fd) (i64.const 1) (local.get $fd) (i64.const 1) (i64.const -1) (i64.const 0)))
	(call $errno (call $s4 (i32.const 285) (local.get $fd) (i64.const 0) (i64.const -1) (i64.const -1)))
	(call $errno (call $s4 (i32.const 285) (local.get $fd) (i64.const 0) (i64.const 0x7fffffffffffffff) (i64.const 0x7fffffffffffffff)))
	;; Memory: nothing, all there is, more than there is, and what wraps.
	(call $errno (call $map (i64.const 0) (i64.const 3)))
	(call $errno (call $map (i64.const -1) (i64.const 3)))
	(call $errno (call $map (i64.const 0xffffffff) (i64.const 3)))
	(call $errno (call $map (i64.const 0x100001000) (i64.const 3)))
	(call $errno (call $map (i64.const 0x20000000) (i64.const 3)))
	(call $errno (call $s5 (i32.const 25) (i64.const 0x10000) (i64.const -1) (i64.const -1) (i64.const 1) (i64.const 0)))
	(call $errno (call $s2 (i32.const 11) (i64.const 1) (i64.const -1)))
	(call $errno (call $s3 (i32.const 29) (i64.const 0) (i64.const -1) (i64.const 0x3b6)))
	;; Descriptors: to numbers beyond all, and arrays that are not there, again and again.
	(loop $again
		(call $errno (call $s1 (i32.const 22) (i64.const 1)))
		(call $errno (call $s4 (i32.const 53) (i64.const 1) (i64.const 1) (i64.const 0) (i64.const -1)))
		(call $errno (call $s3 (i32.const 72) (local.get $fd) (i64.const 0) (i64.const -1)))
		(call $errno (call $s2 (i32.const 33) (local.get $fd) (i64.const -1)))
		(br_if $again (i32.lt_u (global.get $checks) (i32.const 400))))
	;; All of it is still there, and no byte more.
	(block $done (loop $next
		(local.set $got (call $s3 (i32.const 1) (local.get $fd) (i64.const 0x11000) (i64.const 1000)))
		(br_if $done (i64.lt_s (local.get $got) (i64.const 0)))
		(local.set $sum (i64.add (local.get $sum) (local.get $got)))
		(br $next)))
	(call $want (i64.const -28) (local.get $got))
	(call $want (i64.const 4096) (local.get $sum))
	;; Lengths that together are less than one of them.
	(i32.store (i32.const 0x13000) (i32.const 0x11000))
	(i32.store (i32.const 0x13004) (i32.const -1))
	(i32.store (i32.const 0x13008) (i32.const 0x11000))
	(i32.store (i32.const 0x1300c) (i32.const 17))
	(call $pieces (local.get $fd) (i64.const 0x13000) (i64.const 2))
	(call $want (i64.const 0) (call $s1 (i32.const 3) (local.get $fd))))
