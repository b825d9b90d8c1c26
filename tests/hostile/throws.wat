;; A million exceptions thrown and caught take no memory with them.
;; expect: exit 0
(tag $t (param i64))
(func $throw (param i64) (throw $t (local.get 0)))
(func $main (local $i i64)
	(loop $again
		(block $caught (result i64)
			(try_table (catch $t $caught) (call $throw (local.get $i)))
			unreachable)
		(call $want (local.get $i))
		(local.set $i (i64.add (local.get $i) (i64.const 1)))
		(br_if $again (i64.lt_u (local.get $i) (i64.const 1000000)))))
