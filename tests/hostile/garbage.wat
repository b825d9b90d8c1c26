;; Every number with any arguments gets an answer: 300,000 calls of random numbers with malicious
;; arguments.
;; expect: exit 0
;; alone: its calls leave descriptors and mappings behind until it ends
(global $seed (mut i64) (i64.const 0x9e3779b97f4a7c15))
(func $random (param $below i32) (result i32)
	(global.set $seed (i64.xor (global.get $seed) (i64.shl (global.get $seed) (i64.const 13))))
	(global.set $seed (i64.xor (global.get $seed) (i64.shr_u (global.get $seed) (i64.const 7))))
	(global.set $seed (i64.xor (global.get $seed) (i64.shl (global.get $seed) (i64.const 17))))
	(i32.rem_u (i32.wrap_i64 (i64.shr_u (global.get $seed) (i64.const 20))) (local.get $below)))

(table $arguments 16 funcref)
(type $argument (func (result i64)))
(elem (table $arguments) (i32.const 0) func $zero $one $minus $page $low $data $edge $top $beyond $sign $wide $random64 $small $small $data $zero)
(func $zero (result i64) (i64.const 0))
(func $one (result i64) (i64.const 1))
(func $minus (result i64) (i64.const -1))
(func $page (result i64) (i64.const 4096))
(func $low (result i64) (i64.const 0xfff8))
(func $data (result i64) (i64.const 0x18000))
(func $edge (result i64) (i64.const 0x1fffe))
(func $top (result i64) (i64.const 0xfffffffc))
(func $beyond (result i64) (i64.const 0x100000000))
(func $sign (result i64) (i64.const 0x8000000000000000))
(func $wide (result i64) (i64.const 0x7fffffff))
(func $random64 (result i64) (global.get $seed))
(func $small (result i64) (i64.extend_i32_u (call $random (i32.const 12))))

(func $pick (result i64) (call_indirect $arguments (type $argument) (call $random (i32.const 16))))

;; Calls that end the caller, sleep without a bound, or make a descriptor on which another call could.
(func $left_out (param $nr i32) (result i32)
	(block $yes
		(block $no
			(br_if $yes (i32.eq (local.get $nr) (i32.const 0)))     ;; read
			(br_if $yes (i32.eq (local.get $nr) (i32.const 7)))     ;; poll
			(br_if $yes (i32.eq (local.get $nr) (i32.const 15)))    ;; rt_sigreturn
			(br_if $yes (i32.and (i32.ge_u (local.get $nr) (i32.const 22)) (i32.le_u (local.get $nr) (i32.const 23)))) ;; pipe, select
			(br_if $yes (i32.and (i32.ge_u (local.get $nr) (i32.const 34)) (i32.le_u (local.get $nr) (i32.const 38)))) ;; pause ... setitimer
			(br_if $yes (i32.and (i32.ge_u (local.get $nr) (i32.const 41)) (i32.le_u (local.get $nr) (i32.const 62)))) ;; sockets, exit, kill
			(br_if $yes (i32.and (i32.ge_u (local.get $nr) (i32.const 127)) (i32.le_u (local.get $nr) (i32.const 131)))) ;; signals
			(br_if $yes (i32.and (i32.ge_u (local.get $nr) (i32.const 200)) (i32.le_u (local.get $nr) (i32.const 202)))) ;; tkill, futex
			(br_if $yes (i32.and (i32.ge_u (local.get $nr) (i32.const 65)) (i32.le_u (local.get $nr) (i32.const 70)))) ;; semaphores and messages wait
			(br_if $yes (i32.eq (local.get $nr) (i32.const 220)))   ;; semtimedop
			(br_if $yes (i32.and (i32.ge_u (local.get $nr) (i32.const 230)) (i32.le_u (local.get $nr) (i32.const 234)))) ;; exit_group, epoll
			(br_if $yes (i32.and (i32.ge_u (local.get $nr) (i32.const 270)) (i32.le_u (local.get $nr) (i32.const 299)))) ;; descriptors, waits
			(br_if $yes (i32.eq (local.get $nr) (i32.const 213)))
			(br_if $yes (i32.eq (local.get $nr) (i32.const 441)))   ;; epoll_pwait2
			(br $no))
		(return (i32.const 0)))
	(i32.const 1))

(func $main (local $round i32) (local $nr i32)
	(loop $again
		(local.set $nr (call $random (i32.const 470)))
		(if (i32.eqz (call $random (i32.const 20))) (then
			(local.set $nr (i32.add (i32.const 1000) (call $random (i32.const 10))))))
		(if (i32.eqz (call $random (i32.const 50))) (then
			(local.set $nr (i32.wrap_i64 (global.get $seed)))))
		(if (i32.eqz (call $left_out (local.get $nr))) (then
			(drop (call $s6 (local.get $nr) (call $pick) (call $pick) (call $pick) (call $pick) (call $pick) (call $pick)))))
		(local.set $round (i32.add (local.get $round) (i32.const 1)))
		(br_if $again (i32.lt_u (local.get $round) (i32.const 300000)))))
