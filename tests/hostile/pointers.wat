;; Pointers that lead nowhere, and lengths that wrap: EFAULT, never more.
;; expect: exit 0
;; file: data 10000
(data $path "/data\00")

;; Calls with one pointer that the kernel fills or reads.
(func $refused (param $pointer i64)
	(call $want (i64.const -14) (call $s3 (i32.const 0) (i64.const 9) (local.get $pointer) (i64.const 64)))        ;; read
	(call $want (i64.const -14) (call $s4 (i32.const 17) (i64.const 9) (local.get $pointer) (i64.const 64) (i64.const 0))) ;; pread64
	(call $want (i64.const -14) (call $s3 (i32.const 1) (i64.const 9) (local.get $pointer) (i64.const 64)))        ;; write
	(call $want (i64.const -14) (call $s3 (i32.const 19) (i64.const 9) (local.get $pointer) (i64.const 1)))        ;; readv
	(call $want (i64.const -14) (call $s3 (i32.const 20) (i64.const 9) (local.get $pointer) (i64.const 1)))        ;; writev
	(call $want (i64.const -14) (call $s3 (i32.const 2) (local.get $pointer) (i64.const 0) (i64.const 0)))         ;; open
	(call $want (i64.const -14) (call $s2 (i32.const 4) (local.get $pointer) (i64.const 0x11000)))                 ;; stat
	(call $want (i64.const -14) (call $s2 (i32.const 5) (i64.const 9) (local.get $pointer)))                       ;; fstat
	(call $want (i64.const -14) (call $s2 (i32.const 79) (local.get $pointer) (i64.const 64)))                     ;; getcwd
	(call $want (i64.const -14) (call $s1 (i32.const 63) (local.get $pointer)))                                    ;; uname
	(call $want (i64.const -14) (call $s1 (i32.const 22) (local.get $pointer)))                                    ;; pipe
	(call $want (i64.const -14) (call $s2 (i32.const 228) (i64.const 0) (local.get $pointer)))                     ;; clock_gettime
	(call $want (i64.const -14) (call $s2 (i32.const 35) (local.get $pointer) (i64.const 0)))                      ;; nanosleep
	(call $want (i64.const -14) (call $s3 (i32.const 318) (local.get $pointer) (i64.const 64) (i64.const 0)))      ;; getrandom
	(call $want (i64.const -14) (call $s4 (i32.const 13) (i64.const 10) (local.get $pointer) (i64.const 0) (i64.const 8))) ;; rt_sigaction
	(call $want (i64.const -14) (call $s4 (i32.const 14) (i64.const 0) (local.get $pointer) (i64.const 0) (i64.const 8))) ;; rt_sigprocmask
	(call $want (i64.const -14) (call $s2 (i32.const 160) (i64.const 7) (local.get $pointer)))                     ;; setrlimit
	(call $want (i64.const -14) (call $s3 (i32.const 7) (local.get $pointer) (i64.const 1) (i64.const 0)))         ;; poll
	(call $want (i64.const -14) (call $s5 (i32.const 1004) (local.get $pointer)
		(i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0))))                                             ;; spawn

(func $main (local $fd i64)
	(memory.init $path (i32.const 0x11000) (i32.const 0) (i32.const 6))
	(local.set $fd (call $good (call $s3 (i32.const 2) (i64.const 0x11000) (i64.const 2) (i64.const 0))))
	(drop (call $good (call $s2 (i32.const 33) (local.get $fd) (i64.const 9))))
	(call $refused (i64.const 1))
	(call $refused (i64.const 0xffff))
	(call $refused (i64.const 0x40000000))
	(call $refused (i64.const 0xfffeffff0000))
	(call $refused (i64.const 0xfffffff8))
	(call $refused (i64.const 0xffffffff))
	(call $refused (i64.const 0x100000000))
	(call $refused (i64.const 0x100011000))
	(call $refused (i64.const 0x7fffffffffffffff))
	(call $refused (i64.const 0x8000000000011000))
	(call $refused (i64.const -1))
	;; Lengths that end beyond the address space, or wrap to before their start.
	(call $want (i64.const -14) (call $s3 (i32.const 0) (i64.const 9) (i64.const 0x11000) (i64.const 0xffffffff)))
	(call $want (i64.const -14) (call $s3 (i32.const 0) (i64.const 9) (i64.const 0x11000) (i64.const -1)))
	(call $want (i64.const -14) (call $s3 (i32.const 1) (i64.const 9) (i64.const 0x11000) (i64.const -0x11000)))
	(call $want (i64.const -14) (call $s3 (i32.const 0) (i64.const 9) (i64.const 0x11000) (i64.const 0x8000000000000000)))
	;; A path without an end: up to the page that is not there, and longer than any path.
	(memory.fill (i32.const 0x1ff00) (i32.const 97) (i32.const 0x100))
	(call $want (i64.const -14) (call $s3 (i32.const 2) (i64.const 0x1ff00) (i64.const 0) (i64.const 0)))
	(memory.fill (i32.const 0x12000) (i32.const 97) (i32.const 0x2000))
	(call $want (i64.const -36) (call $s3 (i32.const 2) (i64.const 0x12000) (i64.const 0) (i64.const 0)))
	;; A range that ends at the last mapped byte is allowed.
	(call $want (i64.const 16) (call $s4 (i32.const 17) (i64.const 9) (i64.const 0x1fff0) (i64.const 16) (i64.const 0))))
