//! Tests the WASI pass on malformed and unusual modules. Its work on real programs is tested by
//! running them: tests/wasi.

use lind_passes::wasi;
use wasmparser::Validator;

const PROGRAM: &str = r#"(module
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
    (memory (export "memory") 2 4)
    (table 2 funcref)
    (elem (i32.const 0) $write $own)
    (global $at (mut i32) (i32.const 70000))
    (global $place i32 (i32.const 100))
    (tag (param i32))
    (data (i32.const 8) "some data")
    (data (global.get $place) "more")
    (data "passive")
    (start $begin)
    (func $begin)
    (func $own (param i32) (result i32) (block (br_if 0 (local.get 0)) (drop (memory.grow (i32.const 1)))) (memory.size))
    (func (export "_start")
        (drop (call_indirect (param i32) (result i32) (global.get $at) (i32.const 1)))
        (global.set $at (ref.is_null (ref.func $exit)))
        (call $exit (i32.const 0)))
    (elem declare func $exit))"#;

#[test]
fn the_result_is_valid_and_imports_one_call() {
    let module = wat::parse_str(PROGRAM).unwrap();
    assert!(wasi::is_for(&module));
    let adapted = wasi::adapt(&module).unwrap();
    Validator::new().validate_all(&adapted).unwrap();
    assert!(!wasi::is_for(&adapted));
    let text = wasmprinter::print_bytes(&adapted).unwrap();
    assert_eq!(text.matches("(import ").count(), 1, "{text}");
    assert!(!text.contains("memory.grow") && !text.contains("memory.size"), "{text}");
}

#[test]
fn other_programs_are_not_for_wasi() {
    for text in ["(module)", r#"(module (import "env" "wasi_snapshot_preview1" (func)))"#] {
        assert!(!wasi::is_for(&wat::parse_str(text).unwrap()));
    }
    assert!(!wasi::is_for(b"") && !wasi::is_for(b"\0asm") && !wasi::is_for(&[0xff; 100]));
}

/// Modules with bytes changed by chance: an error, or a valid module.
#[test]
fn any_bytes_may_come_in() {
    let module = wat::parse_str(PROGRAM).unwrap();
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |most: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random % u64::try_from(most).unwrap()).unwrap()
    };
    let mut worked = 0;
    for _ in 0..20_000 {
        let mut bytes = module.clone();
        for _ in 0..=next(3) {
            let at = next(bytes.len());
            match next(4) {
                0 => bytes[at] = u8::try_from(next(256)).unwrap(),
                1 => bytes[at] ^= 1 << next(8),
                2 => drop(bytes.remove(at)),
                _ => bytes.insert(at, u8::try_from(next(256)).unwrap()),
            }
        }
        let _ = wasi::is_for(&bytes);
        if let Ok(adapted) = wasi::adapt(&bytes) {
            Validator::new().validate_all(&adapted).unwrap();
            worked += 1;
        }
    }
    assert!(worked > 100, "{worked}");
}
