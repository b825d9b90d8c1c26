;; Tables that grow up to the limit: they count as memory.
;; library
(table $a 0 1048576 funcref) (table $b 0 1048576 funcref) (table $c 0 1048576 funcref) (table $d 0 1048576 funcref)
(func $main (local $grown i32)
	(if (i32.ge_s (table.grow $a (ref.null func) (i32.const 1048576)) (i32.const 0)) (then (local.set $grown (i32.add (local.get $grown) (i32.const 1)))))
	(if (i32.ge_s (table.grow $b (ref.null func) (i32.const 1048576)) (i32.const 0)) (then (local.set $grown (i32.add (local.get $grown) (i32.const 1)))))
	(if (i32.ge_s (table.grow $c (ref.null func) (i32.const 1048576)) (i32.const 0)) (then (local.set $grown (i32.add (local.get $grown) (i32.const 1)))))
	(if (i32.ge_s (table.grow $d (ref.null func) (i32.const 1048576)) (i32.const 0)) (then (local.set $grown (i32.add (local.get $grown) (i32.const 1)))))
	(call $exit (local.get $grown)))
