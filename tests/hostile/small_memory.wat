;; A memory of another size than the reservation.
;; whole
;; expect: exit 126
;; says: memory
(module (memory (export "memory") 1 65536) (func (export "_start") (param i32)))
