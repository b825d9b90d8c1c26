;; Calls that the fault grate would shorten, fail or delay, with malicious arguments: the same
;; errnos as without it.
;; expect: exit 0
;; alone: the line is found by names, which only the runner's own is
;; behind: fault_grate --quiet -r %read,%write:short=1 -r openat,stat:path=/secret*,errno=EIO -r getcwd:delay=1ms
(data $path "/lies\00")

(func $errno (param $got i64)
	(global.set $checks (i32.add (global.get $checks) (i32.const 1)))
	(if (i32.or (i64.ge_s (local.get $got) (i64.const 0)) (i64.lt_s (local.get $got) (i64.const -4095)))
		(then (call $differ (i64.const -1) (local.get $got)))))

;; read, write, pread64, pwrite64, readv, writev, preadv, pwritev, recvfrom, sendto
(func $transfer (param $fd i64) (param $at i64) (param $length i64)
	(call $errno (call $s3 (i32.const 0) (local.get $fd) (local.get $at) (local.get $length)))
	(call $errno (call $s3 (i32.const 1) (local.get $fd) (local.get $at) (local.get $length)))
	(call $errno (call $s4 (i32.const 17) (local.get $fd) (local.get $at) (local.get $length) (i64.const 0)))
	(call $errno (call $s4 (i32.const 18) (local.get $fd) (local.get $at) (local.get $length) (i64.const 0)))
	(call $errno (call $s3 (i32.const 19) (local.get $fd) (local.get $at) (local.get $length)))
	(call $errno (call $s3 (i32.const 20) (local.get $fd) (local.get $at) (local.get $length)))
	(call $errno (call $s5 (i32.const 295) (local.get $fd) (local.get $at) (local.get $length) (i64.const 0) (i64.const 0)))
	(call $errno (call $s5 (i32.const 296) (local.get $fd) (local.get $at) (local.get $length) (i64.const 0) (i64.const 0)))
	(call $errno (call $s6 (i32.const 45) (local.get $fd) (local.get $at) (local.get $length) (i64.const 64) (i64.const 0) (i64.const 0)))
	(call $errno (call $s6 (i32.const 44) (local.get $fd) (local.get $at) (local.get $length) (i64.const 64) (i64.const 0) (i64.const 0))))

(func $main (local $fd i64)
	(memory.init $path (i32.const 0x11000) (i32.const 0) (i32.const 6))
	(local.set $fd (call $good (call $s3 (i32.const 2) (i64.const 0x11000) (i64.const 0x242) (i64.const 0x1a4))))
	(call $want (i64.const 1) (call $s3 (i32.const 1) (local.get $fd) (i64.const 0x11000) (i64.const 5)))
	(call $want (i64.const 0) (call $s3 (i32.const 8) (local.get $fd) (i64.const 0) (i64.const 0)))
	(call $transfer (local.get $fd) (i64.const 1) (i64.const 64))
	(call $transfer (local.get $fd) (i64.const 0xffffffff) (i64.const 64))
	(call $transfer (local.get $fd) (i64.const -1) (i64.const 64))
	(call $transfer (i64.const -1) (i64.const 0x11000) (i64.const 1))
	(call $transfer (i64.const 0x7fffffff) (i64.const 0x11000) (i64.const -1))
	;; Pieces without number, and ones whose lengths wrap.
	(i32.store (i32.const 0x13000) (i32.const 0x11000))
	(i32.store (i32.const 0x13004) (i32.const -1))
	(i32.store (i32.const 0x13008) (i32.const 0x11000))
	(i32.store (i32.const 0x1300c) (i32.const 17))
	(call $errno (call $s3 (i32.const 19) (local.get $fd) (i64.const 0x13000) (i64.const -1)))
	(call $errno (call $s3 (i32.const 20) (local.get $fd) (i64.const 0x13000) (i64.const 0x80000000)))
	(call $errno (call $s3 (i32.const 20) (local.get $fd) (i64.const 0xfffffff8) (i64.const 1024)))
	;; Paths that are not there, without an end, and longer than any.
	(memory.fill (i32.const 0x14000) (i32.const 97) (i32.const 0x2000))
	(call $errno (call $s4 (i32.const 257) (i64.const -100) (i64.const 1) (i64.const 0) (i64.const 0)))
	(call $errno (call $s4 (i32.const 257) (i64.const -100) (i64.const 0x14000) (i64.const 0) (i64.const 0)))
	(call $errno (call $s4 (i32.const 257) (i64.const -100) (i64.const 0xfffffffe) (i64.const 0) (i64.const 0)))
	(call $errno (call $s2 (i32.const 4) (i64.const 0x14000) (i64.const 0x12000)))
	(call $errno (call $s2 (i32.const 4) (i64.const 0x11000) (i64.const 1)))
	(call $errno (call $s2 (i32.const 79) (i64.const 1) (i64.const 64)))
	(call $errno (call $s2 (i32.const 79) (i64.const 0x12000) (i64.const 0)))
	;; It goes on as it should.
	(call $want (i64.const 1) (call $s3 (i32.const 0) (local.get $fd) (i64.const 0x12000) (i64.const 64)))
	(call $want (i64.const 0) (call $s1 (i32.const 3) (local.get $fd))))
