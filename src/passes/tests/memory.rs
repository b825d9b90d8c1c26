//! The memory pass: what comes out, and what it refuses.

use lind_passes::Options;
use wasmparser::{DataKind, ExternalKind, Parser, Payload, TypeRef};

const ONLY: Options = Options { memory: true, loops: false, fpcast: false, fork: lind_passes::Fork::Never };

fn pass(wat: &str) -> Result<Vec<u8>, String> {
    lind_passes::run(&wat::parse_str(wat).unwrap(), &ONLY).map_err(|error| format!("{error:#}"))
}

fn error(wat: &str) -> String {
    let error = pass(wat).unwrap_err();
    assert!(!error.contains('\n'), "one line: {error}");
    error
}

/// The one memory of a module, its memory exports, and whether all data is passive.
fn shape(bytes: &[u8]) -> (wasmparser::MemoryType, Vec<String>, bool) {
    let (mut memories, mut exports, mut passive) = (Vec::new(), Vec::new(), true);
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.unwrap() {
            Payload::ImportSection(s) => {
                s.into_imports().for_each(|i| assert!(!matches!(i.unwrap().ty, TypeRef::Memory(_))))
            }
            Payload::MemorySection(s) => memories.extend(s.into_iter().map(Result::unwrap)),
            Payload::ExportSection(s) => {
                exports.extend(
                    s.into_iter()
                        .map(Result::unwrap)
                        .filter(|e| e.kind == ExternalKind::Memory)
                        .map(|e| e.name.to_owned()),
                );
            }
            Payload::DataSection(s) => passive &= s.into_iter().all(|d| matches!(d.unwrap().kind, DataKind::Passive)),
            _ => {}
        }
    }
    assert_eq!(memories.len(), 1);
    (memories[0], exports, passive)
}

fn assert_ours(bytes: &[u8]) {
    let (memory, exports, passive) = shape(bytes);
    assert_eq!((memory.initial, memory.maximum, memory.shared, memory.memory64), (65536, Some(65536), false, false));
    assert_eq!(exports, ["memory"]);
    assert!(passive);
}

#[test]
fn an_imported_memory_becomes_defined() {
    let wat = r#"(module
        (import "lind" "syscall" (func $s (param i32) (result i64)))
        (import "env" "memory" (memory 2 65536 shared))
        (import "env" "g" (global $g i32))
        (func $f (export "f") (param i32) (result i32) (drop (call $s (local.get 0))) (memory.init 0 (i32.const 0) (i32.const 0) (i32.const 1)) (i32.load (global.get $g)))
        (data $d "x"))"#;
    let out = pass(wat).unwrap();
    assert_ours(&out);
    let text = wasmprinter::print_bytes(&out).unwrap();
    assert!(
        text.contains(r#"(import "lind" "syscall""#)
            && text.contains(r#"(import "env" "g""#)
            && text.contains("call $s"),
        "{text}"
    );
}

#[test]
fn the_only_import_goes_with_its_section() {
    let out = pass(r#"(module (import "env" "memory" (memory 1 4 shared)))"#).unwrap();
    assert_ours(&out);
    assert!(!wasmprinter::print_bytes(&out).unwrap().contains("import"));
}

#[test]
fn a_defined_shared_memory_is_unshared_and_exports_are_kept() {
    let out =
        pass(r#"(module (memory 2 65536 shared) (global (export "sp") (mut i32) (i32.const 7)) (func (export "f")))"#)
            .unwrap();
    assert_ours(&out);
    let text = wasmprinter::print_bytes(&out).unwrap();
    assert!(text.contains(r#"(export "sp""#) && text.contains(r#"(export "f""#), "{text}");
    assert_ours(&pass(r#"(module (memory (export "memory") 2 65536 shared))"#).unwrap());
}

#[test]
fn running_it_again_changes_nothing() {
    let once =
        pass(r#"(module (import "env" "memory" (memory 2 65536 shared)) (data "x") (data (i32.const 0) ""))"#).unwrap();
    assert_eq!(lind_passes::run(&once, &ONLY).unwrap(), once);
}

#[test]
fn data_must_be_passive() {
    let error = error(r#"(module (memory 2 2 shared) (data $quiet "abc") (data $.rodata (i32.const 1024) "hello"))"#);
    assert!(
        error.contains("data segment 1 (.rodata) of 5 bytes is active") && error.contains("--shared-memory"),
        "{error}"
    );
}

#[test]
fn an_empty_active_segment_keeps_its_number() {
    let wat = r#"(module (memory 2 2 shared) (data (i32.const 0) "") (data $d "abc")
        (func (memory.init $d (i32.const 0) (i32.const 0) (i32.const 3))))"#;
    let out = pass(wat).unwrap();
    assert_ours(&out);
    assert!(wasmprinter::print_bytes(&out).unwrap().contains("memory.init $d"));
}

#[test]
fn what_is_not_as_expected_is_named() {
    for (wat, words) in [
        ("(module)", "no memory"),
        ("(module (memory 1 1 shared) (memory 1 1 shared))", "2 memories"),
        (r#"(module (import "a" "b" (memory 1 1 shared)) (memory 1 1 shared))"#, "2 memories"),
        ("(module (memory i64 1 1 shared))", "64-bit"),
        ("(module (memory 1))", "--shared-memory"),
        (r#"(module (memory 1 1 shared) (func (export "memory")))"#, "not the memory"),
        (r#"(module (@custom "linking" "\02") (memory 1 1 shared))"#, "object file"),
        (r#"(module (@custom "dylink.0" "") (memory 1 1 shared))"#, "shared library"),
        ("(component)", "component"),
    ] {
        let error = error(wat);
        assert!(error.contains(words), "{wat}: {error}");
    }
}

#[test]
fn what_is_not_a_module_is_named() {
    for (bytes, words) in [
        (&b""[..], "not a wasm module"),
        (b"#!/bin/sh\n", "not a wasm module"),
        (b"\x7fELF\x02\x01", "ELF"),
        (b"\0asm\x02\0\0\0", "version"),
        (b"\0asm\x01\0\0\0\x01\x05\x01", "not a valid module"),
        (b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x01\x04\x01\x60\0\0", "not a valid module"),
    ] {
        let error = format!("{:#}", lind_passes::run(bytes, &ONLY).unwrap_err());
        assert!(error.contains(words) && !error.contains('\n'), "{bytes:?}: {error}");
    }
}

#[test]
fn names_and_other_custom_sections_stay() {
    let wat = r#"(module (@custom ".debug_line" "abc") (@custom "producers" "\00")
        (@custom "target_features" "\02+\0aatomics...-\0ashared-mem")
        (memory $m 2 2 shared) (func $named) (data $seg "x"))"#;
    let bytes = wat::parse_str(wat).unwrap();
    let out = lind_passes::run(&bytes, &ONLY).unwrap();
    let customs = |bytes: &[u8]| -> Vec<(String, Vec<u8>)> {
        Parser::new(0)
            .parse_all(bytes)
            .filter_map(|p| match p.unwrap() {
                Payload::CustomSection(s) => Some((s.name().to_owned(), s.data().to_vec())),
                _ => None,
            })
            .collect()
    };
    let mut expected = customs(&bytes);
    let features = expected.iter_mut().find(|(name, _)| name == "target_features").unwrap();
    features.1 = b"\x01+\x0aatomics...".to_vec();
    assert_eq!(customs(&out), expected);
}
