;; Two memories over one reservation.
;; whole
;; expect: exit 126
;; says: memor
(module (memory (export "memory") 65536 65536) (memory 65536 65536) (func (export "_start") (param i32)))
