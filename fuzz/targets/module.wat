;; The imports that a program may have, and the exports of a grate.
(module
  (import "lind" "syscall" (func (param i32 i64 i64 i64 i64 i64 i64) (result i64)))
  (import "lind" "call"
    (func (param i32 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64) (result i64)))
  (import "lind" "fork" (func (result i32)))
  (memory (export "memory") 65536 65536)
  (func (export "_start") (param i32))
  (func (export "__lind_handle") (param i32 i32) (result i64) (i64.const 0)))
