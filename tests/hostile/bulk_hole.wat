;; memory.fill over an unmapped page: a fault of that cage.
;; expect: signal 11
(func $main (memory.fill (i32.const 0x1f000) (i32.const 1) (i32.const 0x100000)))
