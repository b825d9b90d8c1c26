//! Programs that run, end and fault.

mod common;

use common::{Runner, program, signal};
use lind_kernel::cage::Status;

const SIGILL: u8 = 4;
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
