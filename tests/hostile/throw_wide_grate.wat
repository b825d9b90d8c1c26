;; Its handler of geteuid throws and keeps exceptions, and answers with the value of one of them.
;; library
;; grate
(global $calls (mut i64) (i64.const 0))
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

(func $handler (param $call i32) (result i64)
	(global.set $calls (i64.add (global.get $calls) (i64.const 1)))
	(call $throw_and_keep (global.get $calls))
	(call $said (i32.wrap_i64 (i64.and (global.get $calls) (i64.const 63)))))
(elem (table $handlers) (i32.const 1) func $handler)
(func $main
	(call $handle (i32.const 107) (i32.const 1))
	(call $finish (call $start)))
