//! The effects of the pass on a module: which functions take part, which calls are noted, which
//! parts stay as they were, and which modules are refused.

use lind_passes::{Fork, Options};

use super::cases::program;
use super::harness::{ONLY, engine};

#[test]
fn what_does_not_return_does_not_spread() {
    let text = |body: &str| {
        format!(
            r#"(module (import "lind" "fork" (func $fork (result i32))) (memory (export "memory") 1)
            (func $dies (drop (call $fork)) (unreachable))
            (func $checks (param i32) (result i32) (if (local.get 0) (then (call $dies) {body})) (local.get 0))
            (func $many (result i32) (i32.add (call $checks (i32.const 0)) (call $checks (i32.const 0))))
            (func (export "run") (drop (call $many))))"#
        )
    };
    let copies = |body: &str| {
        let bytes = lind_passes::run(&wat::parse_str(text(body)).unwrap(), &ONLY).unwrap();
        wasmprinter::print_bytes(bytes).unwrap().matches("(resumed)").count()
    };
    // lind.fork and what dies; or lind.fork and all functions. All are in the table as well.
    assert_eq!((copies("(unreachable)"), copies("(nop) (unreachable)")), (2 * 2, 2 * 5));
}

#[test]
fn only_frames_that_hold_something_take_part() {
    let resumed = |body: &str| {
        let text = format!(
            r#"(module (import "lind" "fork" (func $fork (result i32))) (memory (export "memory") 1) (tag $t)
            (func $f (param $n i32) (result i32) {body}) (func (export "run") (drop (call $f (i32.const 1)))))"#
        );
        let bytes = lind_passes::run(&wat::parse_str(&text).unwrap(), &ONLY).unwrap();
        // The name of a function that has none is its number.
        wasmprinter::print_bytes(bytes).unwrap().contains("$\"f (resumed)\"")
    };
    for hands_on in [
        "(call $fork)",
        "(i64.const 3) (return (call $fork))",
        "(if (result i32) (local.get $n) (then (call $fork)) (else (br 1 (call $fork))))",
        "(block $out (result i32) (block (result i32) (br $out (call $fork))) (drop) (call $fork))",
        "(loop $next (result i32) (br_if $next (local.get $n)) (call $fork))",
    ] {
        assert!(!resumed(hands_on), "{hands_on}");
    }
    for holds in [
        "(i32.eqz (call $fork))",
        "(call $fork) (i32.store (i32.const 0) (i32.const 1))",
        "(drop (call $fork)) (i32.const 1)",
        "(local.tee $n (call $fork))",
        "(block $out (result i32) (br_if $out (call $fork) (local.get $n)))",
        "(call $fork) (loop $next (param i32) (result i32) (if (param i32) (result i32) (local.get $n) (then (drop) (br $next (call $fork)))))",
        "(block $caught (try_table (catch $t $caught) (return (call $fork)))) (i32.const 0)",
    ] {
        assert!(resumed(holds), "{holds}");
    }
}

/// Otherwise its life would be in as many pieces as there are sites, which costs the compiler's
/// register allocator much.
#[test]
fn what_all_sites_need_is_stored_in_one_place() {
    let text = format!(
        r#"(module (import "lind" "fork" (func $fork (result i32))) (memory (export "memory") 1)
        (func $f (param $n i32) (result i32) {} (local.get $n))
        (func (export "run") (drop (call $f (i32.const 1)))))"#,
        "(drop (call $fork))".repeat(5)
    );
    let bytes = lind_passes::run(&wat::parse_str(&text).unwrap(), &ONLY).unwrap();
    let printed = wasmprinter::print_bytes(bytes).unwrap();
    let f = printed.split("(func ").find(|function| function.starts_with("$f ")).unwrap();
    // Each result is compared, and the global behind it. The number of the record, and $n.
    assert_eq!((f.matches("br_if").count(), f.matches("i32.store").count()), (10, 2), "{f}");
}

#[test]
fn changes_of_tables_are_noted() {
    let rest = r#"(table $t 2 funcref) (global $g (mut funcref) (ref.null func)) (elem declare func $log)
        (func (export "run") (table.set $t (i32.const 0) (ref.func $log)))
        (func (export "global") (global.set $g (ref.func $log)) (call $log (call $fork)))
        (func (export "neither") (call $log (call $fork)))"#;
    let engine = engine();
    let bytes = lind_passes::run(&program(rest), &ONLY).unwrap();
    let module = wasmtime::Module::new(&engine, bytes).unwrap();
    for (entry, noted) in [("run", true), ("global", true), ("neither", false)] {
        let mut linker = wasmtime::Linker::new(&engine);
        linker.func_wrap("lind", "fork", || 1i32).unwrap();
        let mut store = wasmtime::Store::new(&engine, ());
        let instance = linker.instantiate(&mut store, &module).unwrap();
        instance.get_typed_func::<(), ()>(&mut store, entry).unwrap().call(&mut store, ()).unwrap();
        let pinned = instance.get_global(&mut store, "__lind_fork_pinned").unwrap();
        assert_eq!(pinned.get(&mut store).unwrap_i32() == i32::MIN, noted, "{entry}");
    }
}

#[test]
fn other_programs_stay_as_they_are() {
    let text = r#"(module (import "env" "other" (func $other (result i32))) (memory (export "memory") 1)
        (func (export "run") (call $f) (call $f)) (func $f (drop (call $other))))"#;
    let bytes = wat::parse_str(text).unwrap();
    assert_eq!(lind_passes::run(&bytes, &ONLY).unwrap(), bytes);
    let never = Options { fork: Fork::Never, ..ONLY };
    let forks = program(r#"(func (export "run") (call $log (call $fork)))"#);
    assert_eq!(lind_passes::run(&forks, &never).unwrap(), forks);
    let always = lind_passes::run(&bytes, &Options { fork: Fork::Always, ..ONLY }).unwrap();
    assert!(wasmprinter::print_bytes(&always).unwrap().contains("__lind_resume"));
}

#[test]
fn what_cannot_be_forked_is_refused() {
    for (text, message) in [
        (r#"(module (import "lind" "fork" (func $f (result i32))) (func (drop (call $f))))"#, "memory"),
        (r#"(module (import "lind" "fork" (func $f (param i32) (result i32))) (memory 1))"#, "type"),
        (r#"(module (import "lind" "fork" (func $f (result i32))) (memory 1) (table funcref (elem $f)))"#, "otherwise"),
        (
            r#"(module (import "lind" "fork" (func $f (result i32))) (memory 1)
                (func (export "__lind_fork_top") (drop (call $f))))"#,
            "taken",
        ),
    ] {
        let error = lind_passes::run(&wat::parse_str(text).unwrap(), &ONLY).unwrap_err();
        assert!(format!("{error:#}").contains(message), "{error:#}");
    }
}

/// The hints are at the branches that sites have, and at no other.
#[test]
fn pads_are_unlikely() {
    use wasmparser::{KnownCustom, Operator, Parser, Payload};
    let text = r#"(module (import "lind" "fork" (func $fork (result i32))) (memory (export "memory") 1)
        (func $waits (param i32) (result i32)
            (block $out (br_if $out (local.get 0)) (drop (call $fork)) (br_if $out (call $fork)))
            (local.get 0))
        (func $plain (param i32) (block $out (br_if $out (local.get 0))))
        (tag $t) (func $catches (block $out (try_table (catch $t $out) (drop (call $waits (i32.const 5))))))
        (func (export "run") (call $plain (call $waits (i32.const 3))) (drop (call $waits (i32.const 4))) (call $catches)))"#;
    for loops in [false, true] {
        let options = Options { loops, ..ONLY };
        let bytes = lind_passes::run(&wat::parse_str(text).unwrap(), &options).unwrap();
        let (mut hinted, mut branches, mut function) = (Vec::new(), Vec::new(), 1);
        for payload in Parser::new(0).parse_all(&bytes) {
            match payload.unwrap() {
                Payload::CustomSection(section) => {
                    let KnownCustom::BranchHints(functions) = section.as_known() else { continue };
                    for function in functions {
                        let function = function.unwrap();
                        let hints = function.hints.into_iter().map(Result::unwrap);
                        hinted.extend(hints.map(|hint| (function.func, hint.func_offset, hint.taken)));
                    }
                }
                Payload::CodeSectionEntry(body) => {
                    let (mut reader, mut last) = (body.get_operators_reader().unwrap(), [None, None]);
                    while !reader.eof() {
                        let (op, at) = reader.read_with_offset().unwrap();
                        // Over the pad, unless it is at the end since exceptions come there as
                        // well.
                        let likely = match last {
                            [_, Some(Operator::GlobalGet { .. })] => Some(true),
                            [Some(Operator::I32Const { .. }), Some(Operator::I32Ne)] => Some(true),
                            [Some(Operator::GlobalGet { .. }), Some(Operator::I32Eqz)] => Some(false),
                            _ => None,
                        };
                        if let (Some(likely), Operator::BrIf { .. }) = (likely, &op) {
                            let offset = u32::try_from(at - body.range().start).unwrap();
                            branches.push((function, offset, likely));
                        }
                        last = [last[1].take(), Some(op)];
                    }
                    function += 1;
                }
                _ => {}
            }
        }
        // Two sites in each of two functions, with two branches each since the calls have results,
        // and one in a third, in both copies. The last call of the entry is not a site.
        assert_eq!(branches.len(), 18);
        assert_eq!(branches.iter().filter(|(.., likely)| *likely).count(), 16);
        assert_eq!(hinted, branches);
    }
}
