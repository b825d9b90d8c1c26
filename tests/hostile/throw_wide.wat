;; Throws exceptions from the first allocation of an instance to far beyond 16 MiB of uncollected
;; ones; the last 64 are kept, and stay unchanged. With a stale base of their heap these would be
;; lost.
;; expect: exit 0
(type $wide (func (param i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64)))
(tag $wide (type $wide))
(table $kept 64 exnref)

(func $throw (param $i i64)
	(throw $wide (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i) (local.get $i)))

;; Throws an exception of half a KiB that says a number, catches it, and keeps it where the last of 64 was.
(func $throw_and_keep (param $i i64)
	(table.set $kept (i32.wrap_i64 (i64.and (local.get $i) (i64.const 63)))
		(block $caught (result exnref)
			(try_table (catch_all_ref $caught) (call $throw (local.get $i)))
			unreachable)))

;; Throws one that was kept again, and returns what it says.
(func $said (param $place i32) (result i64) (local $last i64)
	(block $caught (result i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64)
		(try_table (catch $wide $caught) (throw_ref (table.get $kept (local.get $place))))
		unreachable)
	(local.set $last)
	;; The others say the same.
	(if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3)))) (if (i64.ne (local.get $last)) (then (call $exit (i32.const 3))))
	(local.get $last))

(func $main (local $i i64)
	(call $throw_and_keep (i64.const 0))
	(call $want (i64.const 0) (call $said (i32.const 0)))
	(loop $again
		(local.set $i (i64.add (local.get $i) (i64.const 1)))
		(call $throw_and_keep (local.get $i))
		(call $want (local.get $i) (call $said (i32.wrap_i64 (i64.and (local.get $i) (i64.const 63)))))
		(br_if $again (i64.lt_u (local.get $i) (i64.const 80000))))
	(loop $all
		(call $want (local.get $i) (call $said (i32.wrap_i64 (i64.and (local.get $i) (i64.const 63)))))
		(local.set $i (i64.sub (local.get $i) (i64.const 1)))
		(br_if $all (i64.gt_u (local.get $i) (i64.const 79937)))))
