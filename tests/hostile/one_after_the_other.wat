;; Runs two programs, whose names are its arguments.
;; library
(func $main
	(drop (call $wait (call $good (call $spawn (i32.add (global.get $block) (i32.const 8))))))
	(drop (call $wait (call $good (call $spawn (i32.add (global.get $block) (i32.const 12)))))))
