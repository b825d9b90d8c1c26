;; Malicious addresses, messages and lengths for the net grate: each gets an errno, and denied
;; addresses stay denied.
;; expect: exit 0
;; alone: the line is found by names, which only the runner's own is
;; behind: net_grate --allow connect,send\ 127.0.0.1\ 9 --allow bind\ 127.0.0.1

;; The result is an errno: none of these may do anything.
(func $errno (param $got i64)
	(global.set $checks (i32.add (global.get $checks) (i32.const 1)))
	(if (i32.or (i64.ge_s (local.get $got) (i64.const 0)) (i64.lt_s (local.get $got) (i64.const -4095)))
		(then (call $differ (i64.const -1) (local.get $got)))))

;; 127.0.0.1 and a port of network order at 0x11000.
(func $address (param $port i32)
	(i32.store16 (i32.const 0x11000) (i32.const 2))
	(i32.store16 (i32.const 0x11002) (local.get $port))
	(i32.store (i32.const 0x11004) (i32.const 0x0100007f))
	(i64.store (i32.const 0x11008) (i64.const 0)))

(func $denied (local $fd i64)
	(call $address (i32.const 0x5000))
	(local.set $fd (call $good (call $s3 (i32.const 41) (i64.const 2) (i64.const 2) (i64.const 0))))
	(call $want (i64.const -13) (call $s3 (i32.const 42) (local.get $fd) (i64.const 0x11000) (i64.const 16)))
	(call $want (i64.const -13) (call $s6 (i32.const 44) (local.get $fd) (i64.const 0x11000) (i64.const 1) (i64.const 0) (i64.const 0x11000) (i64.const 16)))
	(call $want (i64.const 0) (call $s1 (i32.const 3) (local.get $fd))))

;; An address at a place, with a length: by every call that takes one.
(func $everywhere (param $fd i64) (param $at i64) (param $length i64)
	(call $errno (call $s3 (i32.const 42) (local.get $fd) (local.get $at) (local.get $length)))
	(call $errno (call $s3 (i32.const 49) (local.get $fd) (local.get $at) (local.get $length)))
	(call $errno (call $s6 (i32.const 44) (local.get $fd) (i64.const 0x11000) (i64.const 1) (i64.const 0) (local.get $at) (local.get $length))))

;; struct msghdr at 0x12000: name, its length, pieces, how many, control, its length, flags.
(func $message (param $name i32) (param $namelen i32) (param $iov i32) (param $iovlen i32) (param $control i32) (param $controllen i32)
	(i32.store (i32.const 0x12000) (local.get $name))
	(i32.store (i32.const 0x12004) (local.get $namelen))
	(i32.store (i32.const 0x12008) (local.get $iov))
	(i32.store (i32.const 0x1200c) (local.get $iovlen))
	(i32.store (i32.const 0x12010) (local.get $control))
	(i32.store (i32.const 0x12014) (local.get $controllen))
	(i32.store (i32.const 0x12018) (i32.const 0)))

;; Sent and received, alone and as one of many; MSG_DONTWAIT, since the socket is good.
(func $both (param $fd i64)
	(call $errno (call $s3 (i32.const 46) (local.get $fd) (i64.const 0x12000) (i64.const 64)))
	(call $errno (call $s3 (i32.const 47) (local.get $fd) (i64.const 0x12000) (i64.const 64)))
	(call $errno (call $s4 (i32.const 307) (local.get $fd) (i64.const 0x12000) (i64.const 0xffffffff) (i64.const 64)))
	(call $errno (call $s5 (i32.const 299) (local.get $fd) (i64.const 0x12000) (i64.const 0xffffffff) (i64.const 64) (i64.const 0))))

(func $main (local $fd i64)
	(local.set $fd (call $good (call $s3 (i32.const 41) (i64.const 2) (i64.const 2) (i64.const 0))))
	(call $address (i32.const 0x5000))
	;; Addresses that are not there, end beyond memory, are too long, too short, or of no length at all.
	(call $everywhere (local.get $fd) (i64.const 1) (i64.const 16))
	(call $everywhere (local.get $fd) (i64.const 0xfffffff8) (i64.const 16))
	(call $everywhere (local.get $fd) (i64.const -1) (i64.const 16))
	(call $everywhere (local.get $fd) (i64.const 0x100011000) (i64.const 16))
	(call $everywhere (local.get $fd) (i64.const 0x11000) (i64.const 0xffffffff))
	(call $everywhere (local.get $fd) (i64.const 0x11000) (i64.const -1))
	(call $everywhere (local.get $fd) (i64.const 0x11000) (i64.const 129))
	(call $everywhere (local.get $fd) (i64.const 0x11000) (i64.const 1))
	(call $everywhere (local.get $fd) (i64.const 0x11000) (i64.const 0x100000008))
	;; The same for numbers that are none.
	(call $everywhere (i64.const -1) (i64.const 0x11000) (i64.const 16))
	(call $everywhere (i64.const 0x7fffffff) (i64.const 0x11000) (i64.const 16))
	(call $everywhere (i64.const 0x10000ffff) (i64.const 0x11000) (i64.const 16))
	;; Messages whose header, pieces, name or control are not there or too many.
	(i32.store (i32.const 0x13000) (i32.const 0x11000))
	(i32.store (i32.const 0x13004) (i32.const 1))
	(call $message (i32.const 1) (i32.const 16) (i32.const 0x13000) (i32.const 1) (i32.const 0) (i32.const 0))
	(call $both (local.get $fd))
	(call $message (i32.const 0x11000) (i32.const -1) (i32.const 0x13000) (i32.const 1) (i32.const 0) (i32.const 0))
	(call $both (local.get $fd))
	(call $message (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 1) (i32.const 0) (i32.const 0))
	(call $both (local.get $fd))
	(call $message (i32.const 0) (i32.const 0) (i32.const 0x13000) (i32.const 0xffffffff) (i32.const 0) (i32.const 0))
	(call $both (local.get $fd))
	(call $message (i32.const 0) (i32.const 0) (i32.const 0xfffffffc) (i32.const 1024) (i32.const 0) (i32.const 0))
	(call $both (local.get $fd))
	(call $message (i32.const 0x11000) (i32.const 16) (i32.const 0x13000) (i32.const 1) (i32.const 1) (i32.const 64))
	(call $errno (call $s3 (i32.const 46) (local.get $fd) (i64.const 0x12000) (i64.const 64)))
	(call $message (i32.const 0x11000) (i32.const 16) (i32.const 0x13000) (i32.const 1) (i32.const 0x14000) (i32.const 0xffffffff))
	(call $errno (call $s3 (i32.const 46) (local.get $fd) (i64.const 0x12000) (i64.const 64)))
	;; Pieces whose lengths wrap.
	(i32.store (i32.const 0x13004) (i32.const -1))
	(i32.store (i32.const 0x13008) (i32.const 0x11000))
	(i32.store (i32.const 0x1300c) (i32.const 0x11))
	(call $message (i32.const 0) (i32.const 0) (i32.const 0x13000) (i32.const 2) (i32.const 0) (i32.const 0))
	(call $both (local.get $fd))
	(i32.store (i32.const 0x13004) (i32.const 1))
	;; Control messages of length 0, shorter than their head, longer than there is, and one that asks for another way of packets.
	(call $message (i32.const 0x11000) (i32.const 16) (i32.const 0x13000) (i32.const 1) (i32.const 0x14000) (i32.const 64))
	(i32.store (i32.const 0x14008) (i32.const 1))
	(i32.store (i32.const 0x1400c) (i32.const 36))
	(call $control (local.get $fd) (i64.const 0))
	(call $control (local.get $fd) (i64.const 3))
	(call $control (local.get $fd) (i64.const 20))
	(call $control (local.get $fd) (i64.const 64))
	(call $control (local.get $fd) (i64.const 65))
	(call $control (local.get $fd) (i64.const -1))
	(call $control (local.get $fd) (i64.const 0x8000000000000010))
	;; Room for an accepted address that is a lie, on a socket that does not listen.
	(call $errno (call $s3 (i32.const 43) (local.get $fd) (i64.const 0x11000) (i64.const 1)))
	(call $errno (call $s4 (i32.const 288) (local.get $fd) (i64.const 1) (i64.const 0x11000) (i64.const -1)))
	;; Nothing has come, and nothing is waited for: an address and a length to be written to nowhere.
	(call $errno (call $s6 (i32.const 45) (local.get $fd) (i64.const 1) (i64.const -1) (i64.const 64) (i64.const 1) (i64.const 1)))
	(call $errno (call $s5 (i32.const 54) (local.get $fd) (i64.const 1) (i64.const 25) (i64.const 1) (i64.const -1)))
	(call $want (i64.const 0) (call $s1 (i32.const 3) (local.get $fd)))
	(call $denied))

(func $control (param $fd i64) (param $length i64)
	(i64.store (i32.const 0x14000) (local.get $length))
	(call $errno (call $s3 (i32.const 46) (local.get $fd) (i64.const 0x12000) (i64.const 64))))
