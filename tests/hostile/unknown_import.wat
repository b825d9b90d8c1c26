;; An import that does not exist is refused by name.
;; whole
;; expect: exit 126
;; says: getenv
(module (import "env" "getenv" (func (param i32) (result i32)))
	(memory (export "memory") 65536 65536) (func (export "_start") (param i32)))
