//! The loop pass: which loops get a barrier, and that nothing else changes.

use lind_passes::Options;

const ONLY: Options = Options { memory: false, loops: true, fpcast: false, fork: lind_passes::Fork::Never };
const MARK: &str = "(;watch;)";
const BARRIER: &str = "i32.const 65536 i32.atomic.load drop";

/// Passes a module whose loops to watch are marked, and compares it byte for byte with the same
/// module that has the barrier in place of the marks.
fn check(name: &str, body: &str) {
    let module = |body: &str| {
        let text = format!(
            r#"(module
            (type $ii (func (param i32) (result i32)))
            (import "lind" "syscall" (func $call (param i32) (result i32)))
            (memory 1) (table 1 funcref) (tag $t) (global $g (mut i32) (i32.const 0))
            (func (param $p i32) (param $n i32) (result i32) (local $x i32) (local $y i32) {body} (i32.const 0)))"#
        );
        wat::parse_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"))
    };
    let out = lind_passes::run(&module(body), &ONLY).unwrap_or_else(|error| panic!("{name}: {error:#}"));
    let expected = module(&body.replace(MARK, BARRIER));
    if out != expected {
        panic!("{name}:\n{}", wasmprinter::print_bytes(&out).unwrap());
    }
    assert_eq!(lind_passes::run(&out, &ONLY).unwrap(), out, "{name}: a second run changed it");
}

#[test]
fn loops_that_wait_are_watched() {
    check("constant address", "(loop $l (;watch;) (br_if $l (i32.eqz (i32.load (i32.const 1024)))))");
    check("parameter", "(loop $l (;watch;) (br_if $l (i32.eqz (i32.load (local.get $p)))))");
    check(
        "offset from a global",
        "(loop $l (;watch;) (br_if $l (i32.load8_u (i32.add (global.get $g) (i32.const 8)))))",
    );
    check(
        "bounded",
        "(loop $l (;watch;) (local.set $n (i32.sub (local.get $n) (i32.const 1))) (drop (i64.load (local.get $p))) (br_if $l (local.get $n)))",
    );
    check("vector", "(loop $l (;watch;) (br_if $l (v128.any_true (v128.load (local.get $p)))))");
    check(
        "lane",
        "(loop $l (;watch;) (br_if $l (v128.any_true (v128.load8_lane 0 (local.get $p) (v128.const i32x4 0 0 0 0)))))",
    );
    check(
        "address by way of a local, as unoptimised code has it",
        "(loop $l (;watch;) (local.set $x (i32.const 1024)) (br_if $l (i32.eqz (i32.load (local.get $x)))))",
    );
    check("a pointer that is itself read", "(loop $l (;watch;) (br_if $l (i32.load (i32.load (local.get $p)))))");
    check("global set only", "(loop $l (;watch;) (global.set $g (i32.const 1)) (br_if $l (i32.load (local.get $p))))");
    check(
        "table written only",
        "(loop $l (;watch;) (table.set (i32.const 0) (ref.null func)) (br_if $l (i32.load (local.get $p))))",
    );
    check(
        "select of the same two",
        "(loop $l (;watch;) (br_if $l (i32.load (select (local.get $p) (local.get $n) (global.get $g)))))",
    );
    check(
        "loop parameter",
        "(local.get $p) (loop $l (param i32) (;watch;) (drop (i32.load)) (local.get $p) (br_if $l (local.get $n)) (drop))",
    );
    check("block result", "(loop $l (;watch;) (br_if $l (i32.load (block (result i32) (i32.const 1024)))))");
    check(
        "if with the same on both sides",
        "(loop $l (;watch;) (br_if $l (i32.load (if (result i32) (local.get $n) (then (i32.const 8)) (else (i32.const 8))))))",
    );
}

#[test]
fn what_is_off_the_way_around_does_not_count() {
    check(
        "call on the way out",
        "(loop $l (;watch;) (if (local.get $n) (then (drop (call $call (i32.const 1))) (unreachable))) (br_if $l (i32.load (local.get $p))))",
    );
    check(
        "store before leaving",
        "(block $out (loop $l (;watch;) (if (local.get $n) (then (i32.store (local.get $p) (i32.const 1)) (br $out))) (br_if $l (i32.load (local.get $p)))))",
    );
    check(
        "store after the last branch back",
        "(loop $l (;watch;) (br_if $l (i32.load (local.get $p))) (i32.store (local.get $p) (i32.const 1)))",
    );
    check(
        "store in code never reached",
        "(loop $l (;watch;) (br_if $l (i32.load (local.get $p))) (return (i32.const 0)) (i32.store (local.get $p) (i32.const 1)) (br $l))",
    );
    check(
        "address changed on the way out",
        "(block $out (loop $l (;watch;) (if (local.get $n) (then (local.set $p (i32.const 1)) (br $out))) (br_if $l (i32.load (local.get $p)))))",
    );
    check(
        "tail call on the way out",
        "(loop $l (;watch;) (if (local.get $n) (then (return_call $call (i32.const 1)))) (br_if $l (i32.load (local.get $p))))",
    );
    check(
        "throw on the way out",
        "(loop $l (;watch;) (if (local.get $n) (then (throw $t))) (br_if $l (i32.load (local.get $p))))",
    );
    check(
        "set to a copy of what it may be",
        "(loop $l (;watch;) (if (local.get $n) (then (local.set $x (local.get $p)))) (br_if $l (i32.load (local.get $x))))",
    );
    check(
        "set to a copy at the end",
        "(loop $l (;watch;) (drop (i32.load (local.get $x))) (local.set $x (local.get $p)) (br_if $l (local.get $n)))",
    );
    check(
        "local restored",
        "(loop $l (;watch;) (local.set $x (local.get $p)) (local.set $p (i32.const 8)) (local.set $p (local.get $x)) (br_if $l (i32.load (local.get $p))))",
    );
}

#[test]
fn loops_with_a_barrier_are_left_alone() {
    check("store", "(loop $l (i32.store8 (local.get $n) (i32.const 1)) (br_if $l (i32.load (local.get $p))))");
    check(
        "store on one way around",
        "(loop $l (if (local.get $n) (then (i32.store (local.get $p) (i32.const 1)))) (br_if $l (i32.load (local.get $p))))",
    );
    check(
        "store and branch back",
        "(loop $l (if (local.get $n) (then (i32.store (local.get $p) (i32.const 1)) (br $l))) (br_if $l (i32.load (local.get $p))))",
    );
    check(
        "vector store",
        "(loop $l (v128.store (local.get $n) (v128.const i32x4 0 0 0 0)) (br_if $l (i32.load (local.get $p))))",
    );
    check("call", "(loop $l (drop (call $call (i32.const 1))) (br_if $l (i32.load (local.get $p))))");
    check(
        "indirect call",
        "(loop $l (drop (call_indirect (type $ii) (i32.const 1) (i32.const 1))) (br_if $l (i32.load (local.get $p))))",
    );
    check("atomic load", "(loop $l (br_if $l (i32.atomic.load (local.get $p))))");
    check(
        "atomic exchange",
        "(loop $l (drop (i32.atomic.rmw.xchg (local.get $p) (i32.const 1))) (br_if $l (i32.load (local.get $p))))",
    );
    check("fence", "(loop $l (atomic.fence) (br_if $l (i32.load (local.get $p))))");
    check(
        "by a table of branches",
        "(loop $l (block $b (br_table $b $b (i32.load (local.get $p)))) (i32.store (local.get $p) (i32.const 0)) (br_table $l $l (local.get $n)))",
    );
}

#[test]
fn loops_without_a_fixed_load_are_left_alone() {
    check("no load", "(loop $l (local.set $n (i32.sub (local.get $n) (i32.const 1))) (br_if $l (local.get $n)))");
    check(
        "array",
        "(loop $l (drop (i32.load (local.get $p))) (local.set $p (i32.add (local.get $p) (i32.const 4))) (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))",
    );
    check("list", "(loop $l (br_if $l (local.tee $p (i32.load offset=4 (local.get $p)))))");
    check(
        "index",
        "(loop $l (drop (f64.load (i32.add (local.get $p) (i32.shl (local.get $n) (i32.const 3))))) (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))",
    );
    check(
        "copy of what changes",
        "(loop $l (local.set $x (local.get $n)) (drop (i32.load (local.get $x))) (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))",
    );
    check(
        "changed by way of another",
        "(loop $l (drop (i32.load (local.get $x))) (local.set $x (local.get $y)) (local.set $y (local.get $n)) (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))",
    );
    check(
        "different on two ways",
        "(loop $l (if (global.get $g) (then (local.set $x (i32.const 8))) (else (local.set $x (i32.const 16)))) (br_if $l (i32.load (local.get $x))))",
    );
    check("never goes around", "(loop $l (drop (i32.load (local.get $p))))");
    check("no loop", "(drop (i32.load (local.get $p)))");
}

#[test]
fn nested_loops_are_seen_each_on_its_own() {
    check(
        "an inner barrier serves the outer loop",
        "(loop $o (loop $i (;watch;) (br_if $i (i32.load (local.get $p)))) (br_if $o (i32.load (local.get $n))))",
    );
    check(
        "an inner store serves the outer loop",
        "(loop $o (loop $i (i32.store (local.get $p) (i32.const 0)) (br_if $i (global.get $g))) (br_if $o (i32.load (local.get $n))))",
    );
    check(
        "an outer store does not serve the inner loop",
        "(loop $o (loop $i (;watch;) (br_if $i (i32.load (local.get $p)))) (i32.store (local.get $p) (i32.const 0)) (br $o))",
    );
    check(
        "inner over an array, outer waits",
        "(loop $o (;watch;) (local.set $x (i32.const 8)) (loop $i (drop (i32.load8_u (local.get $x))) (br_if $i (local.tee $x (i32.sub (local.get $x) (i32.const 1))))) (br_if $o (i32.load (local.get $n))))",
    );
    check(
        "rows and columns",
        "(loop $o (local.set $x (i32.const 8)) (loop $i (drop (f64.load (i32.add (local.get $p) (local.get $x)))) (br_if $i (local.tee $x (i32.sub (local.get $x) (i32.const 1))))) (br_if $o (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))",
    );
    check(
        "pointer from the outer loop",
        "(loop $o (local.set $p (i32.add (local.get $p) (i32.const 4))) (loop $i (;watch;) (br_if $i (i32.load (local.get $p)))) (br_if $o (local.get $n)))",
    );
    check(
        "out of two loops",
        "(block $out (loop $o (;watch;) (loop $i (br_if $out (global.get $g)) (br_if $i (local.tee $n (i32.sub (local.get $n) (i32.const 1))))) (br_if $o (i32.load (local.get $p)))))",
    );
    check(
        "siblings",
        "(loop $a (;watch;) (br_if $a (i32.load (local.get $p)))) (loop $b (br_if $b (local.tee $p (i32.load (local.get $p))))) (loop $c (;watch;) (br_if $c (i32.load (local.get $n))))",
    );
    check(
        "branch back past a store in an inner block",
        "(loop $l (block $b (br_if $b (i32.load (local.get $p))) (i32.store (local.get $p) (i32.const 1))) (br_if $l (local.get $n)))",
    );
}

#[test]
fn exceptions_and_references() {
    check(
        "caught around a call",
        "(loop $l (block $caught (try_table (catch_all $caught) (drop (call $call (i32.const 1))))) (br_if $l (i32.load (local.get $p))))",
    );
    check(
        "caught around nothing",
        "(loop $l (;watch;) (block $caught (try_table (catch_all $caught) (nop))) (br_if $l (i32.load (local.get $p))))",
    );
    check(
        "branch on null",
        "(loop $l (;watch;) (block $null (drop (br_on_null $null (table.get (i32.const 0))))) (br_if $l (i32.load (local.get $p))))",
    );
    check(
        "dead code with an empty stack",
        "(loop $l (;watch;) (if (i32.load (local.get $p)) (then (br $l))) (block (br 0) (i32.store) (br_if $l)) (br_if $l (local.get $n)))",
    );
}

/// Other functions keep their bytes, and so do the sizes the linker padded.
#[test]
fn only_the_loop_changes() {
    let padded = b"\0asm\x01\0\0\0\x01\x04\x01\x60\0\0\x03\x03\x02\0\0\x05\x03\x01\0\x01\x0a\x9a\x80\x80\x80\0\x02\x90\x80\0\0\x03\x40\x41\x80\x80\x80\x80\0\x28\x02\0\x0d\0\x0b\x0b\x84\0\0\x01\x01\x0b";
    let out = lind_passes::run(padded, &ONLY).unwrap();
    let text = wasmprinter::print_bytes(&out).unwrap();
    assert!(text.contains("i32.atomic.load"), "{text}");
    assert!(out.ends_with(b"\x41\x80\x80\x80\x80\0\x28\x02\0\x0d\0\x0b\x0b\x84\0\0\x01\x01\x0b"), "{out:x?}");
}

/// A function that is expensive to analyse is not analysed to the end, but its loops get their
/// barrier.
#[test]
fn a_hostile_function_is_quick() {
    let depth = 20_000;
    let wat = format!(
        "(module (memory 1) (func {} (br_if 0 (i32.load (i32.const 0))) {}))",
        "loop ".repeat(depth),
        "end ".repeat(depth)
    );
    let start = std::time::Instant::now();
    let out = lind_passes::run(&wat::parse_str(&wat).unwrap(), &ONLY).unwrap();
    assert!(wasmprinter::print_bytes(&out).unwrap().contains("i32.atomic.load"));
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}
