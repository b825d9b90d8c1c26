;; Numbers that do not name a call: ENOSYS.
;; expect: exit 0
(func $main (local $nr i32)
	(local.set $nr (i32.const 470))
	(loop $next
		(if (i32.or (i32.lt_u (local.get $nr) (i32.const 1001)) (i32.gt_u (local.get $nr) (i32.const 1017))) (then
			(call $want (i64.const -38) (call $all_ones (local.get $nr)))))
		(local.set $nr (i32.add (local.get $nr) (i32.const 1)))
		(br_if $next (i32.lt_u (local.get $nr) (i32.const 5000))))
	(call $want (i64.const -38) (call $s0 (i32.const -1)))
	(call $want (i64.const -38) (call $s0 (i32.const -2)))
	(call $want (i64.const -38) (call $s0 (i32.const 0x80000000)))
	(call $want (i64.const -38) (call $s0 (i32.const 0x7fffffff)))
	(call $want (i64.const -38) (call $s0 (i32.const 0x40000000)))
	(call $want (i64.const -38) (call $s0 (i32.const 57)))
	(call $want (i64.const -38) (call $s0 (i32.const 58)))
	(call $want (i64.const -38) (call $all_ones (i32.const 1006)))
	;; call_by, with no call where it says, and with nothing to pass on
	(call $want (i64.const -14) (call $all_ones (i32.const 1007)))
	(call $want (i64.const -14) (call $s1 (i32.const 1007) (i64.const 0xffffffa0)))
	(call $want (i64.const -22) (call $s2 (i32.const 1007) (i64.const 0) (i64.const 0)))
	(call $want (i64.const -22) (call $s2 (i32.const 1007) (i64.const 0) (i64.const -1))))

(func $all_ones (param $nr i32) (result i64)
	(call $s6 (local.get $nr)
		(i64.const -1) (i64.const -1) (i64.const -1) (i64.const -1) (i64.const -1) (i64.const -1)))
