;; Exceptions that are caught by reference and kept: memory for them is bounded, and using it up ends the cage alone.
;; expect: any
(tag $t (param i64))
(table $kept 100000 exnref)
(func $throw (param i64) (throw $t (local.get 0)))
(func $main (local $i i32) (local $round i32)
	(loop $again
		(table.set $kept (local.get $i)
			(block $caught (result exnref)
				(try_table (catch_all_ref $caught) (call $throw (i64.const 1)))
				unreachable))
		(local.set $i (i32.rem_u (i32.add (local.get $i) (i32.const 1)) (i32.const 100000)))
		(local.set $round (i32.add (local.get $round) (i32.const 1)))
		(br_if $again (i32.lt_u (local.get $round) (i32.const 300000)))))
