//! Filters: calls that are decided before a handler is entered.

mod common;

use common::{Runner, deep, grate, plain, program};
use lind_kernel::cage::Status;

const GETEUID: u32 = 107;
const GETPID: u32 = 39;
const ALARM: u32 = 37;
const ELOOP: u8 = 40;
/// `LIND_PASS`, as text.
const PASS: &str = "(i64.const -9223372036854775807)";

const TEN: &str = "(func $ten (param i32) (result i64) (i64.const 10))";

/// A filter that does `body`, with `items` for it to call.
fn filter(items: &str, body: &str) -> String {
    format!(
        r#"{items}
        (func (export "__lind_filtered") (result i32) (i32.const 1))
        (func (export "__lind_filter") (param $client i32) (param $nr i32)
            (param $a i64) (param $b i64) (param $c i64) (param $d i64) (param $e i64) (param $f i64) (result i64) {body})"#
    )
}

/// A grate whose handler of geteuid answers with 10, and that has such a filter.
fn ten_with(items: &str, body: &str) -> String {
    grate(&format!("{TEN} {}", filter(items, body)), "$ten", &[(GETEUID, 1)])
}

/// Makes geteuid often enough that there are workers of eight grates that answer their first call,
/// and does `last`.
fn often(last: &str) -> String {
    let call = format!("(drop {})", plain(GETEUID));
    program("", &format!("{} {last}", call.repeat(9)))
}

fn exit_with(value: &str) -> String {
    format!("(call $exit (i32.wrap_i64 {value}))")
}

#[test]
fn a_filter_decides_by_what_it_is_told() {
    let runner = Runner::new();
    let sum = "(i64.add (i64.extend_i32_u (local.get $nr))
        (i64.add (i64.extend_i32_u (local.get $client)) (i64.add
            (i64.add (local.get $a) (i64.mul (local.get $b) (i64.const 3)))
            (i64.add (i64.add (i64.mul (local.get $c) (i64.const 5)) (i64.mul (local.get $d) (i64.const 7)))
                (i64.add (i64.mul (local.get $e) (i64.const 11)) (i64.mul (local.get $f) (i64.const 13)))))))";
    runner.install("sum.wasm", &ten_with("", sum));
    let call = "(call $syscall (i32.const 107) (i64.const 1) (i64.const 2) (i64.const 3) (i64.const 4) (i64.const 5) (i64.const 6))";
    let expected = 107 + 1 + 2 * 3 + 3 * 5 + 4 * 7 + 5 * 11 + 6 * 13;
    let rest = format!("(i64.sub (i64.sub {call} {}) (i64.const {}))", plain(GETPID), expected - 42);
    runner.install("app.wasm", &often(&exit_with(&rest)));
    assert_eq!(runner.run_chain(&["sum.wasm", "app.wasm"]), Status::Exited(42));
}

#[test]
fn what_a_filter_leaves_to_the_handler_the_handler_decides() {
    let runner = Runner::new();
    runner.install("app.wasm", &often(&exit_with(&plain(GETEUID))));
    // ASK, and ANSWER, for which a filter has no room.
    for result in ["-9223372036854775806", "-9223372036854775808"] {
        runner.install("ask.wasm", &ten_with("", &format!("(i64.const {result})")));
        assert_eq!(runner.run_chain(&["ask.wasm", "app.wasm"]), Status::Exited(10), "{result}");
    }
}

#[test]
fn a_filter_that_faults_leaves_its_calls_to_the_handler() {
    let deep = "(func $deep (param $n i64) (result i64)
        (i64.add (i64.const 1) (call $deep (i64.add (local.get $n) (i64.const 1)))))";
    let runner = Runner::new();
    runner.install("app.wasm", &often(&exit_with(&plain(GETEUID))));
    for (items, body) in [
        ("", "(i64.load (i32.const 0))"),
        ("", "(i64.load (i32.const 0xffffffff))"),
        ("", "unreachable"),
        ("", "(i64.div_u (local.get $a) (local.get $b))"),
        ("", "(i64.atomic.load (i32.const 0x10001))"),
        (deep, "(call $deep (local.get $a))"),
    ] {
        runner.install("bad.wasm", &ten_with(items, body));
        assert_eq!(runner.run_chain(&["bad.wasm", "app.wasm"]), Status::Exited(10), "{body}");
    }
}

#[test]
fn a_filter_that_never_returns_keeps_nobody_from_ending() {
    let runner = Runner::new();
    runner.install("spin.wasm", &ten_with("", "(loop $again (br $again)) unreachable"));
    let alarm = format!("(drop (call $sys3 (i32.const {ALARM}) (i64.const 1) (i64.const 0) (i64.const 0)))");
    let forever = format!("{alarm} (loop $again (drop {}) (br $again))", plain(GETEUID));
    runner.install("app.wasm", &program("", &forever));
    assert_eq!(runner.run_chain(&["spin.wasm", "app.wasm"]), Status::Exited(128 + 14));
}

#[test]
fn what_filters_let_go_on_reaches_the_next_grate_and_is_bounded() {
    let runner = Runner::new();
    runner.install("pass.wasm", &ten_with("", PASS));
    runner.install("twenty.wasm", &ten_with("", "(i64.const 20)"));
    runner.install("forward.wasm", &grate("", "$forward", &[(GETEUID, 1)]));
    runner.install("app.wasm", &often(&exit_with(&plain(GETEUID))));
    let negated = format!("(i64.sub (i64.const 0) {})", plain(GETEUID));
    runner.install("errno.wasm", &often(&exit_with(&negated)));
    let chain = |first: &'static str, between: &[&'static str], times: usize, app: &'static str| {
        let mut chain = vec![first];
        chain.extend(between.repeat(times));
        chain.push(app);
        runner.run_chain(&chain)
    };
    // The first call is answered by the first handler, 10; later ones go past it.
    for times in [1, 2, 8] {
        assert_eq!(chain("twenty.wasm", &["pass.wasm"], times, "app.wasm"), Status::Exited(20), "{times}");
    }
    runner.install("through.wasm", &pass_through());
    assert_eq!(chain("twenty.wasm", &["pass.wasm", "through.wasm"], 4, "app.wasm"), Status::Exited(20));
    // A filter does not see a call that a handler makes: only handlers learn whose call it is and
    // whose arguments it has.
    assert_eq!(chain("twenty.wasm", &["forward.wasm"], 2, "app.wasm"), Status::Exited(10));
    assert_eq!(chain("twenty.wasm", &["through.wasm"], 8, "app.wasm"), Status::Exited(20));
    assert_eq!(chain("twenty.wasm", &["through.wasm"], 20, "errno.wasm"), Status::Exited(ELOOP));
}

/// A grate whose handler and whose filter both let calls go on.
fn pass_through() -> String {
    let handler = format!("(func $pass (param i32) (result i64) {PASS})");
    grate(&format!("{handler} {}", filter("", PASS)), "$pass", &[(GETEUID, 1)])
}

/// The handler of the grate in between makes calls of its own, whose arguments are not all one
/// cage's: a filter could not tell.
#[test]
fn calls_with_arguments_of_several_cages_are_for_handlers() {
    let runner = Runner::new();
    runner.install("twenty.wasm", &ten_with("", "(i64.const 20)"));
    let mixed = format!(
        "(func $mixed (param $c i32) (result i64)
            (call $call (i32.const {GETEUID}) (i64.load offset=16 (local.get $c))
                (i64.const 0) (i64.load offset=16 (local.get $c)) (i64.const 0) {}
                (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0)))",
        plain(GETPID)
    );
    runner.install("mixed.wasm", &grate(&mixed, "$mixed", &[(GETEUID, 1)]));
    runner.install("app.wasm", &often(&exit_with(&plain(GETEUID))));
    assert_eq!(runner.run_chain(&["twenty.wasm", "mixed.wasm", "app.wasm"]), Status::Exited(10));
    assert_eq!(runner.run_chain(&["twenty.wasm", "app.wasm"]), Status::Exited(20));
}

#[test]
fn a_filter_asked_from_the_end_of_the_stack() {
    let runner = Runner::new();
    // It needs some stack itself.
    let down = "(func $down (param $n i64) (result i64)
        (if (result i64) (i64.eqz (local.get $n)) (then (i64.const 20))
            (else (i64.add (i64.const 1) (call $down (i64.sub (local.get $n) (i64.const 1)))))))";
    runner.install("down.wasm", &ten_with(down, "(i64.sub (call $down (i64.const 100)) (i64.const 100))"));
    let (mut answered, mut overflowed) = (0, 0);
    let (mut low, mut high) = (0_u32, 1 << 20);
    // Towards the end of the stack: the interesting depths are those nearest to it.
    while low + 1 < high {
        let depth = low + (high - low) / 2;
        runner.install("deep.wasm", &deep(depth, &format!("(drop {})", plain(GETEUID)), &plain(GETEUID)));
        match runner.run_chain(&["down.wasm", "deep.wasm"]) {
            Status::Exited(20) => (answered, low) = (answered + 1, depth),
            Status::Exited(139) => (overflowed, high) = (overflowed + 1, depth),
            other => panic!("depth {depth}: {other:?}"),
        }
    }
    assert!(answered > 3 && overflowed > 3, "{answered} answered, {overflowed} overflowed");
}

#[test]
fn filters_that_do_more_than_compute_are_refused() {
    let runner = Runner::new();
    let refused = |items: &str, body: &str, what: &str| {
        runner.install("bad.wasm", &ten_with(items, body));
        let error = runner.run(&[runner.path("bad.wasm").to_str().unwrap(), "app.wasm"]).map(drop).unwrap_err();
        assert!(error.reason.contains(what), "{body}: {}", error.reason);
    };
    refused("", "(i64.store (i32.const 0x20000) (i64.const 1)) (i64.const 0)", "I64Store");
    refused("", "(memory.fill (i32.const 0x20000) (i32.const 1) (i32.const 9)) (i64.const 0)", "MemoryFill");
    refused("", "(i64.atomic.rmw.add (i32.const 0x20000) (i64.const 1))", "I64AtomicRmwAdd");
    refused("(global $g (mut i64) (i64.const 0))", "(global.set $g (i64.const 1)) (i64.const 0)", "GlobalSet");
    refused("(global $r externref (ref.null extern))", "(drop (global.get $r)) (i64.const 0)", "GlobalGet");
    refused("", "(local externref) (drop (local.get 8)) (i64.const 0)", "variable of type");
    refused("", "(i64.trunc_f64_s (f64.floor (f64.const 1.5)))", "F64Const");
    refused("", "(call_indirect (type $handler) (i32.const 0) (i32.const 1))", "CallIndirect");
    refused("", "(return_call $ten (i32.const 0))", "ReturnCall");
    refused("", &plain(GETPID), "calls an import");
    refused("(func $more (i64.store (i32.const 0x20000) (i64.const 1)))", "(call $more) (i64.const 0)", "I64Store");
    // Of another type.
    runner.install("bad.wasm", &grate(&format!(r#"{TEN} (func (export "__lind_filter"))"#), "$ten", &[(GETEUID, 1)]));
    let error = runner.run(&[runner.path("bad.wasm").to_str().unwrap(), "app.wasm"]).map(drop).unwrap_err();
    assert!(error.reason.contains("__lind_filter"), "{}", error.reason);
    // Nobody's.
    runner.install("bad.wasm", &ten_with("", PASS).replace("__lind_filtered", "other"));
    let error = runner.run(&[runner.path("bad.wasm").to_str().unwrap(), "app.wasm"]).map(drop).unwrap_err();
    assert!(error.reason.contains("__lind_filtered"), "{}", error.reason);
}

#[test]
fn a_filter_decides_for_its_handler_only() {
    let runner = Runner::new();
    let items =
        format!("{TEN} (func $eleven (param i32) (result i64) (i64.const 11)) {}", filter("", "(i64.const 20)"));
    runner.install("two.wasm", &grate(&items, "$ten $eleven", &[(GETEUID, 1), (GETPID, 2)]));
    let pid = format!("(drop {})", plain(GETPID));
    let both = format!("(i64.add {} {})", plain(GETEUID), plain(GETPID));
    runner.install("app.wasm", &often(&format!("{pid} {pid} {}", exit_with(&both))));
    assert_eq!(runner.run_chain(&["two.wasm", "app.wasm"]), Status::Exited(31));
}
