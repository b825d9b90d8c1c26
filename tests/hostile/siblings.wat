;; A grate reaches for a sibling cage, for their parent and for cages that never existed: from
;; its program, and from a handler that serves its own client. All calls are refused, and the
;; sibling notices nothing.
;; expect: exit 0
;; grate
(elem (table $handlers) (i32.const 1) func $serve)

;; In memory: a handler has globals of its own.
(func $me (result i64) (i64.load (i32.const 0x12100)))
(func $parent (result i64) (i64.load (i32.const 0x12108)))
(func $beside (result i64) (i64.load (i32.const 0x12110)))

(func $on (param $nr i32) (param $who i64) (param $a i64) (param $b i64) (param $c i64) (result i64)
	(call $call (local.get $nr) (local.get $who) (local.get $a) (local.get $who) (local.get $b) (local.get $who)
		(local.get $c) (local.get $who) (i64.const 0) (local.get $who) (i64.const 0) (local.get $who) (i64.const 0) (local.get $who)))

(func $by (param $table i64) (param $target i64) (result i64)
	(i64.store (i32.const 0x12000) (i64.const 107))
	(i64.store (i32.const 0x12008) (local.get $table))
	(i64.store (i32.const 0x12010) (local.get $target))
	(call $s1 (i32.const 1007) (i64.const 0x12000)))

;; `no` is EPERM, or ESRCH for those that never were.
(func $reach (param $who i64) (param $no i64)
	;; its calls: one number, all of them, back to before, its whole table, and ours made its
	(call $want (local.get $no) (call $s5 (i32.const 1001) (local.get $who) (i64.const 107) (call $me) (i64.const 1) (i64.const 0)))
	(call $want (local.get $no) (call $s5 (i32.const 1001) (local.get $who) (i64.const 0xffffffff) (call $me) (i64.const 1) (i64.const 0)))
	(call $want (local.get $no) (call $s5 (i32.const 1001) (local.get $who) (i64.const 107) (call $me) (i64.const 0) (i64.const 2)))
	(call $want (local.get $no) (call $s2 (i32.const 1003) (call $me) (local.get $who)))
	(call $want (local.get $no) (call $s2 (i32.const 1003) (local.get $who) (call $me)))
	;; calls as if it made them, through its table and on its state
	(call $want (local.get $no) (call $on (i32.const 107) (local.get $who) (i64.const 0) (i64.const 0) (i64.const 0)))
	(call $want (local.get $no) (call $on (i32.const 3) (local.get $who) (i64.const 50) (i64.const 0) (i64.const 0)))
	(call $want (local.get $no) (call $on (i32.const 9) (local.get $who) (i64.const 0) (i64.const 4096) (i64.const 3)))
	(call $want (local.get $no) (call $on (i32.const 231) (local.get $who) (i64.const 9) (i64.const 0) (i64.const 0)))
	(call $want (local.get $no) (call $by (local.get $who) (local.get $who)))
	(call $want (local.get $no) (call $by (local.get $who) (call $me)))
	;; its memory, both ways
	(call $want (local.get $no) (call $s6 (i32.const 1002) (i64.const 0x11800) (i64.const 0x11000) (i64.const 8) (i64.const 0) (call $me) (local.get $who)))
	(call $want (local.get $no) (call $s6 (i32.const 1002) (i64.const 0x11000) (i64.const 0x11800) (i64.const 8) (i64.const 0) (local.get $who) (call $me)))
	;; its limits (signals are as on Linux: they go to processes of the same user)
	(call $want (local.get $no) (call $s4 (i32.const 302) (local.get $who) (i64.const 7) (i64.const 0x11900) (i64.const 0))))

(func $all
	(call $reach (call $beside) (i64.const -1))
	(call $reach (call $parent) (i64.const -1))
	(call $reach (i64.const 77777) (i64.const -3)))

(func $serve (param $c i32) (result i64) (call $all) (i64.const 4242))

;; A child with as many arguments as `kind` says.
(func $kind (param $kind i32) (param $at i32) (local $i i32)
	(local.set $i (i32.const 0))
	(loop $next
		(i32.store (i32.add (local.get $at) (i32.shl (local.get $i) (i32.const 2))) (i32.load offset=4 (global.get $block)))
		(local.set $i (i32.add (local.get $i) (i32.const 1)))
		(br_if $next (i32.lt_u (local.get $i) (local.get $kind))))
	(i32.store (i32.add (local.get $at) (i32.shl (local.get $i) (i32.const 2))) (i32.const 0)))

;; A pipe at these numbers.
(func $pipe (param $read i64) (param $write i64)
	(call $want (i64.const 0) (call $s1 (i32.const 22) (i64.const 0x11100)))
	(call $want (local.get $read) (call $s2 (i32.const 33) (i64.load32_u (i32.const 0x11100)) (local.get $read)))
	(call $want (local.get $write) (call $s2 (i32.const 33) (i64.load32_u (i32.const 0x11104)) (local.get $write)))
	(call $want (i64.const 0) (call $s1 (i32.const 3) (i64.load32_u (i32.const 0x11100))))
	(call $want (i64.const 0) (call $s1 (i32.const 3) (i64.load32_u (i32.const 0x11104)))))

;; Says that its memory is ready, waits for the end of the attempts, and looks.
(func $victim (local $user i64)
	(local.set $user (call $good (call $s0 (i32.const 107))))
	(i64.store (i32.const 0x11000) (i64.const 0x5afe5afe))
	(call $want (i64.const 1) (call $s3 (i32.const 1) (i64.const 53) (i64.const 0x11000) (i64.const 1)))
	(call $want (i64.const 1) (call $s3 (i32.const 0) (i64.const 50) (i64.const 0x11200) (i64.const 1)))
	(call $want (i64.const 0x5afe5afe) (i64.load (i32.const 0x11000)))
	(if (i64.eq (call $s0 (i32.const 107)) (i64.const 4242)) (then (call $exit (i32.const 3))))
	(call $want (local.get $user) (call $s0 (i32.const 107)))
	(call $exit (i32.const 7)))

(func $main (local $argc i32) (local $victim i64) (local $grate i64)
	(local.set $argc (i32.load (global.get $block)))
	(i64.store (i32.const 0x12100) (call $good (call $s0 (i32.const 39))))
	(i64.store (i32.const 0x12108) (call $good (call $s0 (i32.const 110))))
	(if (i32.eq (local.get $argc) (i32.const 2)) (then (call $victim)))
	;; The grate's client.
	(if (i32.eq (local.get $argc) (i32.const 4)) (then
		(call $want (i64.const 4242) (call $s0 (i32.const 107)))
		(call $exit (i32.const 0))))
	(if (i32.eq (local.get $argc) (i32.const 3)) (then
		(call $want (i64.const 8) (call $s3 (i32.const 0) (i64.const 51) (i64.const 0x11200) (i64.const 8)))
		(i64.store (i32.const 0x12110) (i64.load (i32.const 0x11200)))
		(call $all)
		(call $handle (i32.const 107) (i32.const 1))
		(call $kind (i32.const 4) (i32.const 0x11300))
		(call $finish (call $good (call $s5 (i32.const 1004) (i64.load32_u (i32.const 0x11300)) (i64.const 0x11300)
			(i64.const 0) (i64.const 0x10900) (i64.extend_i32_u (global.get $count)))))))
	(call $pipe (i64.const 50) (i64.const 52))
	(call $pipe (i64.const 51) (i64.const 53))
	(call $kind (i32.const 2) (i32.const 0x11300))
	(local.set $victim (call $good (call $spawn (i32.const 0x11300))))
	(call $want (i64.const 1) (call $s3 (i32.const 0) (i64.const 51) (i64.const 0x11200) (i64.const 1)))
	(i64.store (i32.const 0x11200) (local.get $victim))
	(call $want (i64.const 8) (call $s3 (i32.const 1) (i64.const 53) (i64.const 0x11200) (i64.const 8)))
	(call $kind (i32.const 3) (i32.const 0x11300))
	(local.set $grate (call $good (call $spawn (i32.const 0x11300))))
	(call $want (i64.const 0) (call $wait (local.get $grate)))
	(call $want (i64.const 1) (call $s3 (i32.const 1) (i64.const 52) (i64.const 0x11200) (i64.const 1)))
	(call $want (i64.const 0x700) (call $wait (local.get $victim))))
