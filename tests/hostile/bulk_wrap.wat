;; memory.copy beyond the end of memory: a fault of that cage.
;; expect: signal 11
(func $main (memory.copy (i32.const 0xfffffff0) (i32.const 0x11000) (i32.const 0x100)))
