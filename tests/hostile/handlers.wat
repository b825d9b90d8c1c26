;; Signal handlers that do not exist, of odd types, without a stack, without an end: each ends
;; its own cage at most.
;; expect: exit 0
(global $sp (export "__stack_pointer") (mut i32) (i32.const 0x20000))
(global $calls (mut i64) (i64.const 0))
(tag $thrown)
(table (export "__indirect_function_table") 10 funcref)
(elem (i32.const 2) $plain $result $odd $recurse $throw $spin $wild)

(func $count (global.set $calls (i64.add (global.get $calls) (i64.const 1))))
(func $plain (param i32)
	(call $want (i64.const 10) (i64.extend_i32_u (local.get 0)))
	(call $count))
(func $result (result i32 i64) (call $count) (i32.const 5) (i64.const 6))
(func $odd (param f64 i64 i32 f32 i32 i32 i64) (result f64)
	(call $want (i64.const 10) (local.get 1))
	;; siginfo_t lies at the second integer.
	(call $want (i64.const 10) (i64.load32_u (local.get 2)))
	(call $want (i64.const 0) (local.get 6))
	(call $count) (f64.const 7))
(func $recurse (param i32) (call $raise))
(func $throw (throw $thrown))
(func $spin (param i32) (loop $on (br $on)))
;; A handler that moves its stack pointer and unmaps where it was.
(func $wild (param i32 i32 i32)
	(drop (call $s2 (i32.const 11) (i64.const 0x10000) (i64.const 65536)))
	(global.set $sp (i32.const 0xffffffff)))

(func $raise (drop (call $s2 (i32.const 200) (call $s0 (i32.const 186)) (i64.const 10))))
(func $handle (param $signal i64) (param $handler i32) (param $flags i32)
	(i32.store (i32.const 0x12000) (local.get $handler))
	(i32.store (i32.const 0x12004) (local.get $flags))
	(i64.store (i32.const 0x1200c) (i64.const 0))
	(call $want (i64.const 0) (call $s4 (i32.const 13) (local.get $signal) (i64.const 0x12000) (i64.const 0) (i64.const 8))))

(func $child (param $kind i32)
	;; Not there: an empty place, one beyond the table, one far beyond.
	(if (i32.eq (local.get $kind) (i32.const 97)) (then (call $handle (i64.const 10) (i32.const 9) (i32.const 0))))
	(if (i32.eq (local.get $kind) (i32.const 98)) (then (call $handle (i64.const 10) (i32.const 99) (i32.const 0))))
	(if (i32.eq (local.get $kind) (i32.const 99)) (then (call $handle (i64.const 10) (i32.const -1) (i32.const 0))))
	;; No room for what it is given.
	(if (i32.eq (local.get $kind) (i32.const 100)) (then
		(global.set $sp (i32.const 16))
		(call $handle (i64.const 10) (i32.const 4) (i32.const 4))))
	(if (i32.eq (local.get $kind) (i32.const 101)) (then
		(global.set $sp (i32.const 0xfffffff0))
		(call $handle (i64.const 10) (i32.const 4) (i32.const 4))))
	;; For ever deeper: SA_NODEFER.
	(if (i32.eq (local.get $kind) (i32.const 102)) (then (call $handle (i64.const 10) (i32.const 5) (i32.const 0x40000000))))
	(if (i32.eq (local.get $kind) (i32.const 103)) (then (call $handle (i64.const 10) (i32.const 6) (i32.const 0))))
	;; Killed: in a handler, and at a fault that is tried again and again.
	(if (i32.eq (local.get $kind) (i32.const 104)) (then (call $handle (i64.const 10) (i32.const 7) (i32.const 0))))
	(if (i32.eq (local.get $kind) (i32.const 105)) (then
		(call $handle (i64.const 11) (i32.const 3) (i32.const 0))
		(drop (i32.load (i32.const 0)))))
	(if (i32.eq (local.get $kind) (i32.const 106)) (then (call $handle (i64.const 10) (i32.const 8) (i32.const 4))))
	(call $raise)
	(call $exit (i32.const 7)))

(func $run (param $kind i32) (param $kill i32) (param $status i64) (local $pid i64)
	(i32.store (i32.const 0x11000) (i32.load offset=4 (global.get $block)))
	(i32.store (i32.const 0x11004) (i32.const 0x11100))
	(i32.store (i32.const 0x11008) (i32.const 0))
	(i32.store (i32.const 0x11100) (local.get $kind))
	(local.set $pid (call $good (call $spawn (i32.const 0x11000))))
	(if (local.get $kill) (then
		(i64.store (i32.const 0x11200) (i64.const 0))
		(i64.store (i32.const 0x11208) (i64.const 20000000))
		(drop (call $s2 (i32.const 35) (i64.const 0x11200) (i64.const 0)))
		(call $want (i64.const 0) (call $s2 (i32.const 62) (local.get $pid) (i64.const 9)))))
	(call $want (local.get $status) (call $wait (local.get $pid))))

(func $main
	(if (i32.gt_u (i32.load (global.get $block)) (i32.const 1)) (then
		(call $child (i32.load8_u (i32.load offset=8 (global.get $block))))))
	(drop (call $s6 (i32.const 9) (i64.const 0x10000) (i64.const 0x20000) (i64.const 3) (i64.const 0x32) (i64.const -1) (i64.const 0)))
	(call $handle (i64.const 10) (i32.const 2) (i32.const 0))
	(call $raise)
	(call $handle (i64.const 10) (i32.const 3) (i32.const 4))
	(call $raise)
	(call $handle (i64.const 10) (i32.const 4) (i32.const 4))
	(call $raise)
	(call $want (i64.const 3) (global.get $calls))
	(call $run (i32.const 97) (i32.const 0) (i64.const 0x0b))
	(call $run (i32.const 98) (i32.const 0) (i64.const 0x0b))
	(call $run (i32.const 99) (i32.const 0) (i64.const 0x0b))
	(call $run (i32.const 100) (i32.const 0) (i64.const 0x0b))
	(call $run (i32.const 101) (i32.const 0) (i64.const 0x0b))
	(call $run (i32.const 102) (i32.const 0) (i64.const 0x0b))
	(call $run (i32.const 103) (i32.const 0) (i64.const 0x06))
	(call $run (i32.const 106) (i32.const 0) (i64.const 0x700))
	(call $run (i32.const 104) (i32.const 1) (i64.const 9))
	(call $run (i32.const 105) (i32.const 1) (i64.const 9)))
