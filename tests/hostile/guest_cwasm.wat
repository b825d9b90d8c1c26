;; A cage writes compiled code: bytes of its own, a valid file with one byte changed, and one
;; with another's signature. None is run.
;; library
(data $valid "/good.cwasm\00")
(data $own "/own.cwasm\00")
(data $elf "\7fELF\02\01\01\c8 not what it says")

;; Runs the file that is named at 0x11000.
(func $run (result i64)
	(i32.store (i32.const 0x11100) (i32.const 0x11000))
	(i32.store (i32.const 0x11104) (i32.const 0))
	(call $spawn (i32.const 0x11100)))

(func $refused
	(call $want (i64.const -13) (call $run)))

(func $open (param $flags i64) (result i64)
	(call $good (call $s3 (i32.const 2) (i64.const 0x11000) (local.get $flags) (i64.const 0x1ff))))

(func $close (param $fd i64)
	(call $want (i64.const 0) (call $s1 (i32.const 3) (local.get $fd))))

;; Puts the byte at `from` to an offset of the file, which nobody has open when it is run.
(func $put (param $from i64) (param $at i64) (local $fd i64)
	(local.set $fd (call $open (i64.const 2)))
	(call $want (i64.const 1) (call $s4 (i32.const 18) (local.get $fd) (local.get $from) (i64.const 1) (local.get $at)))
	(call $close (local.get $fd)))

(func $cut (param $size i64) (local $fd i64)
	(local.set $fd (call $open (i64.const 2)))
	(call $want (i64.const 0) (call $s2 (i32.const 77) (local.get $fd) (local.get $size)))
	(call $close (local.get $fd)))

;; Changes the byte at an offset of the file, and back.
(func $flipped (param $fd i64) (param $at i64)
	(call $want (i64.const 1) (call $s4 (i32.const 17) (local.get $fd) (i64.const 0x12000) (i64.const 1) (local.get $at)))
	(i32.store8 (i32.const 0x12001) (i32.xor (i32.load8_u (i32.const 0x12000)) (i32.const 1)))
	(call $put (i64.const 0x12001) (local.get $at))
	(call $refused)
	(call $put (i64.const 0x12000) (local.get $at)))

(func $main (local $fd i64) (local $size i64)
	(memory.init $valid (i32.const 0x11000) (i32.const 0) (i32.const 12))
	(local.set $fd (call $open (i64.const 0)))
	(local.set $size (call $good (call $s3 (i32.const 8) (local.get $fd) (i64.const 0) (i64.const 2))))
	;; As it is it runs.
	(call $want (i64.const 0) (call $wait (call $good (call $run))))
	(call $flipped (local.get $fd) (i64.const 64))
	(call $flipped (local.get $fd) (i64.const 5000))
	(call $flipped (local.get $fd) (i64.shr_u (local.get $size) (i64.const 1)))
	(call $flipped (local.get $fd) (i64.sub (local.get $size) (i64.const 100)))
	(call $flipped (local.get $fd) (i64.sub (local.get $size) (i64.const 1)))
	(call $cut (i64.sub (local.get $size) (i64.const 1)))
	(call $refused)
	;; From nothing.
	(memory.init $own (i32.const 0x11000) (i32.const 0) (i32.const 11))
	(local.set $fd (call $open (i64.const 0x242)))
	(memory.init $elf (i32.const 0x12000) (i32.const 0) (i32.const 25))
	(call $want (i64.const 25) (call $s3 (i32.const 1) (local.get $fd) (i64.const 0x12000) (i64.const 25)))
	;; Busy, for as long as it may be written.
	(call $want (i64.const -26) (call $run))
	(call $close (local.get $fd))
	(call $refused)
	(call $cut (i64.const 100000))
	(call $refused))
