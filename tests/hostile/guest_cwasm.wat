;; A cage makes compiled code: bytes of its own, a valid file with one byte changed, and one with another's tag. None is run.
;; library
(data $valid "/good.cwasm\00")
(data $own "/own.cwasm\00")
(data $elf "\7fELF\02\01\01\00 not what it says")

(func $refused
	(i32.store (i32.const 0x11100) (i32.const 0x11000))
	(i32.store (i32.const 0x11104) (i32.const 0))
	(call $want (i64.const -13) (call $spawn (i32.const 0x11100))))

;; Changes the byte at an offset of the file at fd, and back.
(func $flipped (param $fd i64) (param $at i64)
	(call $want (i64.const 1) (call $s4 (i32.const 17) (local.get $fd) (i64.const 0x12000) (i64.const 1) (local.get $at)))
	(i32.store8 (i32.const 0x12001) (i32.xor (i32.load8_u (i32.const 0x12000)) (i32.const 1)))
	(call $want (i64.const 1) (call $s4 (i32.const 18) (local.get $fd) (i64.const 0x12001) (i64.const 1) (local.get $at)))
	(call $refused)
	(call $want (i64.const 1) (call $s4 (i32.const 18) (local.get $fd) (i64.const 0x12000) (i64.const 1) (local.get $at))))

(func $main (local $fd i64) (local $size i64)
	(memory.init $valid (i32.const 0x11000) (i32.const 0) (i32.const 12))
	(local.set $fd (call $good (call $s3 (i32.const 2) (i64.const 0x11000) (i64.const 2) (i64.const 0))))
	(local.set $size (call $good (call $s3 (i32.const 8) (local.get $fd) (i64.const 0) (i64.const 2))))
	;; As it is it runs.
	(i32.store (i32.const 0x11100) (i32.const 0x11000))
	(i32.store (i32.const 0x11104) (i32.const 0))
	(call $want (i64.const 0) (call $wait (call $good (call $spawn (i32.const 0x11100)))))
	(call $flipped (local.get $fd) (i64.const 64))
	(call $flipped (local.get $fd) (i64.const 5000))
	(call $flipped (local.get $fd) (i64.shr_u (local.get $size) (i64.const 1)))
	(call $flipped (local.get $fd) (i64.sub (local.get $size) (i64.const 100)))
	(call $flipped (local.get $fd) (i64.sub (local.get $size) (i64.const 1)))
	(call $want (i64.const 0) (call $s2 (i32.const 77) (local.get $fd) (i64.sub (local.get $size) (i64.const 1))))
	(call $refused)
	;; From nothing.
	(memory.init $own (i32.const 0x11000) (i32.const 0) (i32.const 11))
	(local.set $fd (call $good (call $s3 (i32.const 2) (i64.const 0x11000) (i64.const 0x242) (i64.const 0x1ff))))
	(memory.init $elf (i32.const 0x12000) (i32.const 0) (i32.const 25))
	(call $want (i64.const 25) (call $s3 (i32.const 1) (local.get $fd) (i64.const 0x12000) (i64.const 25)))
	(call $refused)
	(call $want (i64.const 0) (call $s2 (i32.const 77) (local.get $fd) (i64.const 100000)))
	(call $refused))
