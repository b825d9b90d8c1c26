;; A message queue's descriptor is a socket to the host: reading, filling and shutting it down
;; misleads only the caller, and nothing waits.
;; expect: exit 0
(data $name "hostile\00")
(data $attr "\00\00\00\00\00\00\00\00\02\00\00\00\00\00\00\00\10\00\00\00\00\00\00\00")
(global $queue (mut i64) (i64.const 0))
(global $other (mut i64) (i64.const 0))

(func $open (param $flags i64) (result i64)
	(call $s4 (i32.const 240) (i64.const 0x11000) (local.get $flags) (i64.const 0x180) (i64.const 0x11100)))
(func $send (param $fd i64) (result i64)
	(call $s5 (i32.const 242) (local.get $fd) (i64.const 0x11200) (i64.const 16) (i64.const 1) (i64.const 0)))
(func $receive (param $fd i64) (result i64)
	(call $s5 (i32.const 243) (local.get $fd) (i64.const 0x11300) (i64.const 16) (i64.const 0) (i64.const 0)))
;; The events of poll for a descriptor.
(func $ready (param $fd i64) (result i64)
	(i32.store (i32.const 0x11400) (i32.wrap_i64 (local.get $fd)))
	(i32.store (i32.const 0x11404) (i32.const 5))
	(drop (call $good (call $s3 (i32.const 7) (i64.const 0x11400) (i64.const 1) (i64.const 0))))
	(i64.load16_u (i32.const 0x11406)))
(func $turn
	(call $want (i64.const -11) (call $receive (global.get $queue)))
	(call $want (i64.const 4) (call $ready (global.get $other)))
	(call $want (i64.const 0) (call $send (global.get $queue)))
	(call $want (i64.const 5) (call $ready (global.get $other)))
	(call $want (i64.const 0) (call $send (global.get $queue)))
	(call $want (i64.const 1) (call $ready (global.get $other)))
	(call $want (i64.const -11) (call $send (global.get $queue)))
	(call $want (i64.const 16) (call $receive (global.get $other)))
	(call $want (i64.const 16) (call $receive (global.get $queue))))

(func $main (local $i i32)
	(memory.init $name (i32.const 0x11000) (i32.const 0) (i32.const 8))
	(memory.init $attr (i32.const 0x11100) (i32.const 0) (i32.const 24))
	;; O_CREAT | O_RDWR | O_NONBLOCK
	(global.set $queue (call $good (call $open (i64.const 0x842))))
	(global.set $other (call $good (call $open (i64.const 0x802))))
	(call $turn)
	;; Filled by hand (MSG_DONTWAIT | MSG_NOSIGNAL), as much as goes in.
	(loop $more
		(br_if $more (i64.gt_s (call $s6 (i32.const 44) (global.get $queue) (i64.const 0x12000) (i64.const 4096) (i64.const 0x4040)
			(i64.const 0) (i64.const 0)) (i64.const 0))))
	(call $turn)
	;; Emptied by hand where there is something.
	(call $want (i64.const 0) (call $send (global.get $queue)))
	(drop (call $s6 (i32.const 45) (global.get $queue) (i64.const 0x12000) (i64.const 4096) (i64.const 0x40) (i64.const 0) (i64.const 0)))
	(call $want (i64.const 16) (call $receive (global.get $queue)))
	(call $turn)
	;; A larger buffer, blocking, no more of either way.
	(i32.store (i32.const 0x11500) (i32.const 1000000))
	(drop (call $s5 (i32.const 54) (global.get $queue) (i64.const 1) (i64.const 7) (i64.const 0x11500) (i64.const 4)))
	(call $turn)
	(call $want (i64.const -22) (call $s3 (i32.const 0) (global.get $queue) (i64.const 0x12000) (i64.const 16)))
	(drop (call $s2 (i32.const 48) (global.get $queue) (i64.const 2)))
	(call $turn)
	;; Invalid structs, invalid names, and a queue opened too often.
	(call $want (i64.const -14) (call $s4 (i32.const 240) (i64.const 0x11000) (i64.const 0x42) (i64.const 0x180) (i64.const 8)))
	(call $want (i64.const -14) (call $s3 (i32.const 245) (global.get $queue) (i64.const 8) (i64.const 0)))
	(call $want (i64.const -14) (call $s2 (i32.const 244) (global.get $queue) (i64.const 0xfffffff8)))
	(call $want (i64.const -14) (call $s5 (i32.const 242) (global.get $queue) (i64.const 0xfffffff8) (i64.const 16) (i64.const 0) (i64.const 0)))
	(call $want (i64.const -90) (call $s5 (i32.const 242) (global.get $queue) (i64.const 0x11200) (i64.const -1) (i64.const 0) (i64.const 0)))
	(call $want (i64.const 0) (call $s1 (i32.const 241) (i64.const 0x11000)))
	(call $want (i64.const -2) (call $s1 (i32.const 241) (i64.const 0x11000)))
	;; Nobody has its name any more; it goes with its descriptors.
	(call $want (i64.const 0) (call $send (global.get $queue))))
