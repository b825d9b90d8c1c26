//! Programs that run, end and fault.

mod common;

use common::{Runner, program, signal};
use lind_kernel::cage::Status;

const SIGILL: u8 = 4;
const SIGABRT: u8 = 6;
const SIGBUS: u8 = 7;
const SIGFPE: u8 = 8;
const SIGSEGV: u8 = 11;

#[test]
fn exit_status_is_the_programs() {
    let runner = Runner::new();
    assert_eq!(runner.run_text(&program("", "(call $exit (i32.const 42))")), Status::Exited(42));
    assert_eq!(runner.run_text(&program("", "")), Status::Exited(0));
}

#[test]
fn arguments_arrive_on_the_stack() {
    let runner = Runner::new();
    // Exits with argc * 16 + the second character of argv[1].
    let body = "(call $exit (i32.add (i32.mul (i32.load (local.get $block)) (i32.const 16))
        (i32.sub (i32.load8_u offset=1 (i32.load offset=8 (local.get $block))) (i32.const 0x61))))";
    runner.install("args.wasm", &program("", body));
    assert_eq!(runner.run(&["args.wasm", "xc", "y"]).unwrap(), Status::Exited(3 * 16 + 2));
}

#[test]
fn traps_are_signals() {
    let runner = Runner::new();
    let cases = [
        ("unreachable", SIGILL),
        ("(drop (i32.div_s (i32.const 1) (i32.load (i32.const 65536))))", SIGFPE),
        ("(drop (i32.load (i32.const 0)))", SIGSEGV),
        ("(i32.store (i32.const 0x70000000) (i32.const 1))", SIGSEGV),
        ("(drop (i32.load offset=4294967295 (i32.const 0xffffffff)))", SIGSEGV),
        ("(drop (i32.atomic.load (i32.const 0x10001)))", SIGBUS),
        ("(call $again)", SIGSEGV),
    ];
    for (body, expected) in cases {
        let items = "(func $again (call $again))";
        assert_eq!(runner.run_text(&program(items, body)), signal(expected), "{body}");
    }
}

#[test]
fn bulk_memory_on_missing_pages_ends_only_the_cage() {
    let runner = Runner::new();
    let cases = [
        "(memory.fill (i32.const 0x70000000) (i32.const 1) (i32.const 100))",
        "(memory.fill (i32.const 0x1f000) (i32.const 1) (i32.const 0x100000))",
        "(memory.copy (i32.const 0x10000) (i32.const 0x70000000) (i32.load (i32.const 0x10000)))",
        "(memory.copy (i32.const 0x70000000) (i32.const 0x10000) (i32.const 5000))",
        "(memory.copy (i32.const 0x10000) (i32.const 0x1fff0) (i32.const 0x9000))",
        // Constant and short: compiled in line, as instructions that are not expected to trap.
        "(memory.copy (i32.const 0x70000000) (i32.const 0x10000) (i32.const 64))",
        "(memory.copy (i32.const 0x10000) (i32.const 0) (i32.const 3))",
        "(memory.init $data (i32.const 0x70000000) (i32.const 0) (i32.const 4))",
        "(memory.init $big (i32.const 0x70000000) (i32.const 0) (i32.const 200))",
    ];
    let big = "x".repeat(200);
    let items = format!(r#"(data $data "abcd") (data $big "{big}")"#);
    for body in cases {
        let body = format!("(i32.store (i32.const 0x10000) (i32.const 77)) {body}");
        assert_eq!(runner.run_text(&program(&items, &body)), signal(SIGSEGV), "{body}");
    }
    assert_eq!(runner.run_text(&program("", "(call $exit (i32.const 1))")), Status::Exited(1));
}

#[test]
fn a_load_past_the_end_of_a_truncated_file_is_sigbus() {
    let runner = Runner::new();
    std::fs::write(runner.path("file"), vec![1; 0x2000]).unwrap();
    let path = runner.path("file");
    let path = path.to_str().unwrap();
    // open, mmap shared, ftruncate to one page, then touch the second.
    let touch = [
        ("(drop (i32.load offset=0x1000 (local.get $p)))", SIGBUS),
        (
            "(memory.copy (i32.const 0x10800) (i32.add (local.get $p) (i32.const 0x1000)) (i32.load (i32.const 0x10ff0)))",
            SIGBUS,
        ),
        ("(memory.copy (i32.const 0x10800) (i32.add (local.get $p) (i32.const 0x1000)) (i32.const 16))", SIGBUS),
    ];
    for (touch, expected) in touch {
        let body = format!(
            "(local $fd i64) (local $p i32)
            (memory.init $path (i32.const 0x10000) (i32.const 0) (i32.const {len}))
            (i32.store (i32.const 0x10ff0) (i32.const 1000))
            (local.set $fd (call $sys3 (i32.const 2) (i64.const 0x10000) (i64.const 2) (i64.const 0)))
            (local.set $p (i32.wrap_i64 (call $syscall (i32.const 9) (i64.const 0) (i64.const 0x2000) (i64.const 3)
                (i64.const 1) (local.get $fd) (i64.const 0))))
            (drop (i32.load offset=0x1000 (local.get $p)))
            (drop (call $sys3 (i32.const 77) (local.get $fd) (i64.const 0x1000) (i64.const 0)))
            {touch}",
            len = path.len() + 1
        );
        let data = format!(r#"(data $path "{path}\00")"#);
        assert_eq!(runner.run_text(&program(&data, &body)), signal(expected), "{touch}");
    }
}

#[test]
fn throwing_without_end_exhausts_nothing() {
    let runner = Runner::new();
    let items = "(tag $t (param i32)) (func $throws (param i32) (throw $t (local.get 0)))";
    // Two hundred thousand exceptions, each caught, and the last one's value returned.
    let body = "(local $n i32) (local $last i32) (local.set $n (i32.const 200000))
        (loop $again
            (block $caught (result i32)
                (try_table (catch $t $caught) (call $throws (local.get $n)))
                (i32.const 99))
            (local.set $last)
            (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
        (call $exit (i32.add (local.get $last) (i32.const 4)))";
    assert_eq!(runner.run_text(&program(items, body)), Status::Exited(5));
    // An exception that nobody catches.
    assert_eq!(runner.run_text(&program(items, "(call $throws (i32.const 1))")), signal(SIGABRT));
    // Exceptions kept alive without end: each holds the one before it.
    let items = "(tag $t (param exnref)) (func $throws (param exnref) (throw $t (local.get 0)))";
    let body = "(local $e exnref)
        (loop $again
            (block $caught (result exnref exnref)
                (try_table (catch_ref $t $caught) (call $throws (local.get $e)))
                unreachable)
            (local.set $e) drop
            (br $again))";
    assert_eq!(runner.run_text(&program(items, body)), signal(SIGABRT));
}

#[test]
fn what_a_cage_must_not_import_or_be_is_refused_by_name() {
    let runner = Runner::new();
    let memory = r#"(memory (export "memory") 65536 65536)"#;
    let start = r#"(func (export "_start") (param i32))"#;
    let cases = [
        (format!(r#"(module (import "env" "print" (func)) {memory} {start})"#), "env.print"),
        (format!(r#"(module (import "lind" "syscall" (func (param i32))) {memory} {start})"#), "lind.syscall has type"),
        (format!(r#"(module (import "lind" "memory" (memory 1)) {start})"#), "lind.memory"),
        (format!("(module {start})"), "memory"),
        (format!(r#"(module (memory (export "memory") 1) {start})"#), "65536 pages"),
        (format!(r#"(module (memory (export "memory") 65536 65536 shared) {start})"#), "shared"),
        (format!(r#"(module (memory 65536 65536) {start})"#), "export"),
        (format!(r#"(module {memory} {start} (data (i32.const 70000) "x"))"#), "data segment 0 is active"),
        (format!("(module {memory})"), "_start"),
        (format!(r#"(module {memory} (func (export "_start")))"#), "_start has type"),
        (format!("(module {memory} {start} (type (struct (field i32))))"), "garbage collection"),
        (format!(r#"(module {memory} {start} (func (export "__lind_landing")))"#), "__lind_landing"),
    ];
    for (module, expected) in cases {
        runner.install("bad.wasm", &module);
        let error = runner.run(&["bad.wasm"]).unwrap_err();
        assert!(error.reason.contains(expected), "{module}: {}", error.reason);
        assert_eq!(error.errno, lind_kernel::Errno::ENOEXEC);
    }
    std::fs::write(runner.path("text.wasm"), "#!/bin/sh\n").unwrap();
    assert!(runner.run(&["text.wasm"]).unwrap_err().reason.contains("not a WebAssembly program"));
    std::fs::write(runner.path("cut.wasm"), b"\0asm\x01\0\0\0\x01").unwrap();
    assert!(runner.run(&["cut.wasm"]).is_err());
}

#[test]
fn guest_tables_and_memory_grow_no_further_than_allowed() {
    let runner = Runner::new();
    let items = "(table $t 1 funcref)";
    let body = "(call $exit (i32.eq (table.grow $t (ref.null func) (i32.const 100000000)) (i32.const -1)))";
    assert_eq!(runner.run_text(&program(items, body)), Status::Exited(1));
    let body = "(call $exit (i32.eq (memory.grow (i32.const 1)) (i32.const -1)))";
    assert_eq!(runner.run_text(&program("", body)), Status::Exited(1));
}

#[test]
fn a_start_function_is_guest_code_too() {
    let runner = Runner::new();
    let items = "(func $early (call $exit (i32.const 9))) (start $early)";
    assert_eq!(runner.run_text(&program(items, "(call $exit (i32.const 1))")), Status::Exited(9));
    let items = "(func $early (drop (i32.load (i32.const 0)))) (start $early)";
    assert_eq!(runner.run_text(&program(items, "(call $exit (i32.const 1))")), signal(SIGSEGV));
}
