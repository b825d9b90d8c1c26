;; A memory that is not the cage's own.
;; whole
;; expect: exit 126
;; says: memory
(module (import "env" "memory" (memory 65536 65536)) (func (export "_start") (param i32)))
