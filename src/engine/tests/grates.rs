//! Calls that go through grates.

mod common;

use common::{Runner, deep, grate, grate_that, plain, program};
use lind_kernel::cage::Status;

const GETEUID: u32 = 107;
const GETPID: u32 = 39;
const SET_TID_ADDRESS: u32 = 218;
const EXIT_GROUP: u32 = 231;
const EIO: u8 = 5;
const ELOOP: u8 = 40;

/// Exits with the low byte of what `call` returned.
fn exit_with(call: &str) -> String {
    program("", &format!("(call $exit (i32.wrap_i64 {call}))"))
}

/// Exits with the errno that `call` returned.
fn exit_errno(call: &str) -> String {
    program("", &format!("(call $exit (i32.sub (i32.const 0) (i32.wrap_i64 {call})))"))
}

const TEN: &str = "(func $ten (param i32) (result i64) (i64.const 10))";

#[test]
fn a_handler_answers() {
    let runner = Runner::new();
    runner.install("ten.wasm", &grate(TEN, "$ten", &[(GETEUID, 1)]));
    runner.install("app.wasm", &exit_with(&plain(GETEUID)));
    assert_eq!(runner.run_chain(&["ten.wasm", "app.wasm"]), Status::Exited(10));
}

#[test]
fn what_is_forwarded_reaches_the_next_grate_and_then_the_kernel() {
    let runner = Runner::new();
    let add_one = "(func $add (param $c i32) (result i64) (i64.add (call $forward (local.get $c)) (i64.const 1)))";
    runner.install("ten.wasm", &grate(TEN, "$ten", &[(GETEUID, 1)]));
    runner.install("add.wasm", &grate(add_one, "$add", &[(GETEUID, 1), (GETPID, 1)]));
    runner.install("app.wasm", &exit_with(&plain(GETEUID)));
    assert_eq!(runner.run_chain(&["ten.wasm", "add.wasm", "add.wasm", "app.wasm"]), Status::Exited(12));
    // getpid is answered for the client: the id of its first thread, which nobody intercepts, plus
    // two.
    runner.install("pid.wasm", &exit_with(&format!("(i64.sub {} {})", plain(GETPID), plain(SET_TID_ADDRESS))));
    assert_eq!(runner.run_chain(&["add.wasm", "add.wasm", "pid.wasm"]), Status::Exited(2));
}

#[test]
fn a_forwarded_exit_ends_the_client_and_not_the_grate() {
    let runner = Runner::new();
    runner.install("forward.wasm", &grate("", "$forward", &[(EXIT_GROUP, 1)]));
    runner.install("app.wasm", &program("", "(call $exit (i32.const 7)) unreachable"));
    assert_eq!(runner.run_chain(&["forward.wasm", "forward.wasm", "app.wasm"]), Status::Exited(7));
}

#[test]
fn a_trap_in_a_handler_ends_the_grate_and_the_call_is_eio() {
    let runner = Runner::new();
    let traps = "(func $trap (param i32) (result i64) (i64.load (i32.const 0)))";
    runner.install("trap.wasm", &grate(traps, "$trap", &[(GETEUID, 1), (GETPID, 1)]));
    // The first call sees the death, the second finds the grate dead; exit still works.
    let body = format!(
        "(local $a i32) (local.set $a (i32.wrap_i64 {})) (call $exit (i32.sub (i32.const 0) (i32.add (local.get $a) (i32.wrap_i64 {}))))",
        plain(GETEUID),
        plain(GETPID)
    );
    runner.install("app.wasm", &program("", &body));
    let (grate, app) = runner.run_below("trap.wasm", "app.wasm");
    assert_eq!((grate, app), (128 + 11, 2 * EIO));
}

#[test]
fn exit_in_a_handler_ends_the_grate_and_the_call_is_eio() {
    let runner = Runner::new();
    let exits = "(func $leave (param i32) (result i64) (call $exit (i32.const 3)) unreachable)";
    runner.install("exits.wasm", &grate(exits, "$leave", &[(GETEUID, 1)]));
    runner.install("app.wasm", &exit_errno(&plain(GETEUID)));
    let (grate, app) = runner.run_below("exits.wasm", "app.wasm");
    assert_eq!((grate, app), (3, EIO));
}

#[test]
fn a_grate_that_unmaps_its_workers_stack_dies_alone() {
    let runner = Runner::new();
    // munmap of everything above the first mapping, from inside the handler.
    let unmaps = "(func $unmap (param $c i32) (result i64)
        (drop (call $sys3 (i32.const 11) (i64.const 0x20000) (i64.const 0xfffd0000) (i64.const 0))) (i64.const 1))";
    runner.install("unmap.wasm", &grate(unmaps, "$unmap", &[(GETEUID, 1)]));
    let two =
        format!("(drop {}) (call $exit (i32.sub (i32.const 0) (i32.wrap_i64 {})))", plain(GETEUID), plain(GETEUID));
    runner.install("app.wasm", &program("", &two));
    let (_, app) = runner.run_below("unmap.wasm", "app.wasm");
    assert_eq!(app, EIO);
}

#[test]
fn calls_through_many_grates_are_bounded() {
    let runner = Runner::new();
    runner.install("forward.wasm", &grate("", "$forward", &[(GETEUID, 1)]));
    runner.install("ten.wasm", &grate(TEN, "$ten", &[(GETEUID, 1)]));
    runner.install("app.wasm", &exit_with(&plain(GETEUID)));
    runner.install("errno.wasm", &exit_errno(&plain(GETEUID)));
    let chain = |forwards: usize, app: &'static str| {
        let mut chain = vec!["ten.wasm"];
        chain.extend(std::iter::repeat_n("forward.wasm", forwards));
        chain.push(app);
        runner.run_chain(&chain)
    };
    assert_eq!(chain(8, "app.wasm"), Status::Exited(10));
    assert_eq!(chain(20, "errno.wasm"), Status::Exited(ELOOP));
}

#[test]
fn calls_that_grates_let_go_on_are_bounded_too() {
    /// PASS, whatever else the handler was given.
    const PASS: &str = "(func $pass (param i32) (result i64) (i64.const -9223372036854775807))";
    let runner = Runner::new();
    runner.install("pass.wasm", &grate(PASS, "$pass", &[(GETEUID, 1)]));
    runner.install("forward.wasm", &grate("", "$forward", &[(GETEUID, 1)]));
    runner.install("ten.wasm", &grate(TEN, "$ten", &[(GETEUID, 1)]));
    runner.install("app.wasm", &exit_with(&plain(GETEUID)));
    runner.install("errno.wasm", &exit_errno(&plain(GETEUID)));
    let chain = |between: &[&'static str], times: usize, app: &'static str| {
        let mut chain = vec!["ten.wasm"];
        chain.extend(between.repeat(times));
        chain.push(app);
        runner.run_chain(&chain)
    };
    assert_eq!(chain(&["pass.wasm"], 8, "app.wasm"), Status::Exited(10));
    assert_eq!(chain(&["pass.wasm", "forward.wasm"], 4, "app.wasm"), Status::Exited(10));
    assert_eq!(chain(&["pass.wasm"], 20, "errno.wasm"), Status::Exited(ELOOP));
    assert_eq!(chain(&["pass.wasm", "forward.wasm"], 10, "errno.wasm"), Status::Exited(ELOOP));
}

#[test]
fn a_call_from_the_end_of_the_stack_still_reaches_eight_grates() {
    let runner = Runner::new();
    runner.install("forward.wasm", &grate("", "$forward", &[(GETEUID, 1)]));
    runner.install("ten.wasm", &grate(TEN, "$ten", &[(GETEUID, 1)]));
    // Counts how deep it can go, then goes to just above that depth and calls. The first pass ends
    // by a trap in a program of its own, so the depth is found by trying: the test passes if either
    // the call is answered or the program ends by SIGSEGV for its stack, at every depth.
    let mut answered = 0;
    let mut overflowed = 0;
    let (mut low, mut high) = (0_u32, 1 << 20);
    // Bisect towards the end of the stack: the interesting depths are those nearest to it.
    while low + 1 < high {
        let depth = low + (high - low) / 2;
        runner.install("deep.wasm", &deep(depth, "", &plain(GETEUID)));
        let mut chain = vec!["ten.wasm"];
        chain.extend(["forward.wasm"; 7]);
        chain.push("deep.wasm");
        match runner.run_chain(&chain) {
            Status::Exited(10) => {
                answered += 1;
                low = depth;
            }
            Status::Exited(139) => {
                overflowed += 1;
                high = depth;
            }
            other => panic!("depth {depth}: {other:?}"),
        }
    }
    assert!(answered > 3 && overflowed > 3, "{answered} answered, {overflowed} overflowed");
}

#[test]
fn a_program_without_a_way_in_cannot_register() {
    let runner = Runner::new();
    let source = grate(TEN, "$ten", &[(GETEUID, 1)]).replace("__lind_handle", "something_else");
    runner.install("none.wasm", &source);
    runner.install("app.wasm", &exit_with(&plain(GETEUID)));
    assert_eq!(runner.run_chain(&["none.wasm", "app.wasm"]), Status::Exited(99));
}

#[test]
fn linds_own_entry_works() {
    let runner = Runner::new();
    let lind = r#"(func $ten (param i32) (result i64) (i64.const 10))
        (func (export "pass_fptr_to_wt") (param $f i64) (param $grate i64) (param i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64)
            (result i32) (i32.add (i32.wrap_i64 (local.get $f)) (i32.const 40)))"#;
    let source = grate(lind, "$ten", &[(GETEUID, 1)]).replace("\"__lind_handle\"", "\"other\"");
    runner.install("lind.wasm", &source);
    runner.install("app.wasm", &exit_with(&plain(GETEUID)));
    assert_eq!(runner.run_chain(&["lind.wasm", "app.wasm"]), Status::Exited(41));
}

#[test]
fn a_handler_that_never_returns_ends_with_its_grate() {
    let runner = Runner::new();
    // The handler says that it runs and spins without a call; the grate's main thread ends the
    // grate.
    for spin in ["(nop)", "(memory.fill (i32.const 0x11000) (i32.const 1) (i32.load (i32.const 0x10e04)))"] {
        let spins = format!(
            "(func $spin (param i32) (result i64)
                (i32.store (i32.const 0x10e04) (i32.const 0x8000))
                (i32.atomic.store (i32.const 0x10e00) (i32.const 1)) (loop $again {spin} (br $again)) unreachable)"
        );
        let rest = format!(
            "(loop $wait (drop {}) (br_if $wait (i32.eqz (i32.atomic.load (i32.const 0x10e00)))))
            (drop (call $sys3 (i32.const 24) (i64.const 0) (i64.const 0) (i64.const 0)))
            (call $exit (i32.const 5))",
            plain(24)
        );
        runner.install("spin.wasm", &grate_that(&spins, "$spin", &[(GETEUID, 1)], &rest));
        runner.install("app.wasm", &exit_errno(&plain(GETEUID)));
        assert_eq!(runner.run_below("spin.wasm", "app.wasm"), (5, EIO));
    }
}

#[test]
fn a_handler_is_asked_once_of_a_call_that_moves_data() {
    let runner = Runner::new();
    // Counts its calls, and returns the count to a call with its id.
    let counts = |rest: &str| {
        let count = format!(
            "(func $count (param $c i32) (result i64)
                (i32.store (i32.const 0x10e00) (i32.add (i32.load (i32.const 0x10e00)) (i32.const 1)))
                (if (i32.eq (i32.load (local.get $c)) (i32.const {GETEUID}))
                    (then (return (i64.load32_u (i32.const 0x10e00)))))
                {rest})"
        );
        grate(&count, "$count", &[(0, 1), (1, 1), (17, 1), (18, 1), (GETEUID, 1)])
    };
    runner.install("pass.wasm", &counts("(i64.const -9223372036854775807)"));
    runner.install("forward.wasm", &counts("(call $forward (local.get $c))"));
    runner.install("seven.wasm", &counts("(i64.const 7)"));
    // A pipe; a call that the host makes; one that it refuses; a descriptor and an address that do
    // not exist. The sum of all results, and the count.
    let call = |nr: u32, fd: &str, at: &str| format!("(call $sys3 (i32.const {nr}) {fd} {at} (i64.const 1))");
    let (from, to) = ("(i64.load32_u (i32.const 0x10e00))", "(i64.load32_u (i32.const 0x10e04))");
    let (none, good, bad) = ("(i64.const -1)", "(i64.const 0x10e08)", "(i64.const 0xfffffff0)");
    let calls = [
        (call(1, to, good), 1),
        (call(0, from, good), 1),
        (call(17, from, good), -29),
        (call(18, to, good), -29),
        (call(0, to, good), -9),
        (call(0, none, good), -9),
        (call(18, none, good), -9),
        (call(1, to, bad), -14),
    ];
    let (results, count) = (calls.iter().map(|(_, result)| result).sum(), calls.len() + 1);
    let sum = calls.iter().fold("(i64.const 0)".to_owned(), |sum, (call, _)| format!("(i64.add {sum} {call})"));
    let body = |expected: i64| {
        format!(
            "(drop (call $sys3 (i32.const 293) (i64.const 0x10e00) (i64.const 0) (i64.const 0)))
            (if (i64.ne {sum} (i64.const {expected})) (then (call $exit (i32.const 98))))
            (call $exit (i32.wrap_i64 {}))",
            plain(GETEUID)
        )
    };
    let count = Status::Exited(u8::try_from(count).unwrap());
    runner.install("app.wasm", &program("", &body(results)));
    for grates in
        [&["pass.wasm"][..], &["forward.wasm"], &["pass.wasm", "forward.wasm"], &["forward.wasm", "pass.wasm"]]
    {
        let chain: Vec<&str> = grates.iter().copied().chain(["app.wasm"]).collect();
        assert_eq!(runner.run_chain(&chain), count, "{grates:?}");
    }
    runner.install("app.wasm", &program("", &body(7 * 8)));
    assert_eq!(runner.run_chain(&["seven.wasm", "app.wasm"]), count);
}
