;; Claims a data image of two pages, one of them in its heap, and contains neither.
;; whole
;; expect: exit 126
;; says: lind.data
(module
	(memory (export "memory") 65536 65536)
	(global (export "__heap_base") i32 (i32.const 0x20000))
	(func (export "_start") (param i32))
	(@custom "lind.data" "\00\00\00\00\01\00\00\00\1f\00\00\00\02\00\00\00"))
