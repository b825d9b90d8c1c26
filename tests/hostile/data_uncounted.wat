;; Claims a data image of more pieces than there are numbers.
;; whole
;; expect: exit 126
;; says: lind.data
(module
	(memory (export "memory") 65536 65536)
	(func (export "_start") (param i32))
	(@custom "lind.data" "\00\00\00\00\ff\ff\ff\ff\10\00\00\00"))
