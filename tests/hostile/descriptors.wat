;; Opens all descriptors that the limit allows: EMFILE for all calls that make more, and after
;; closing them new ones can be opened.
;; expect: exit 0
;; file: data 10000
(data $path "/data\00")
(func $main (local $fd i64) (local $last i64)
	(memory.init $path (i32.const 0x11000) (i32.const 0) (i32.const 6))
	(block $full
		(loop $next
			(local.set $fd (call $s3 (i32.const 2) (i64.const 0x11000) (i64.const 0) (i64.const 0)))
			(br_if $full (i64.lt_s (local.get $fd) (i64.const 0)))
			(local.set $last (local.get $fd))
			(br $next)))
	(call $want (i64.const -24) (local.get $fd))
	(call $want (i64.const -24) (call $s1 (i32.const 32) (i64.const 0)))                                       ;; dup
	(call $want (i64.const -24) (call $s3 (i32.const 72) (i64.const 0) (i64.const 0) (i64.const 0)))           ;; fcntl F_DUPFD
	(call $want (i64.const -24) (call $s1 (i32.const 22) (i64.const 0x11100)))                                 ;; pipe
	(call $want (i64.const -24) (call $s3 (i32.const 41) (i64.const 1) (i64.const 1) (i64.const 0)))           ;; socket
	(call $want (i64.const -24) (call $s4 (i32.const 53) (i64.const 1) (i64.const 1) (i64.const 0) (i64.const 0x11100))) ;; socketpair
	(call $want (i64.const -24) (call $s2 (i32.const 290) (i64.const 0) (i64.const 0)))                        ;; eventfd2
	(call $want (i64.const -24) (call $s1 (i32.const 291) (i64.const 0)))                                      ;; epoll_create1
	(call $want (i64.const -24) (call $s2 (i32.const 283) (i64.const 1) (i64.const 0)))                        ;; timerfd_create
	(call $want (i64.const 0) (call $s3 (i32.const 436) (i64.const 3) (i64.const 0xffffffff) (i64.const 0)))   ;; close_range
	(call $want (i64.const 3) (call $s3 (i32.const 2) (i64.const 0x11000) (i64.const 0) (i64.const 0)))
	;; dup2 beyond the limit, and to numbers that are none.
	(call $want (i64.const -9) (call $s2 (i32.const 33) (i64.const 3) (i64.const 1024)))
	(call $want (i64.const -9) (call $s2 (i32.const 33) (i64.const 3) (i64.const 0x7fffffff)))
	(call $want (i64.const -9) (call $s2 (i32.const 33) (i64.const 3) (i64.const -1))))
