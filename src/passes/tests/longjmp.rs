//! The longjmp pass: an exception takes the way that it took, and longjmp passes by what is cleaned
//! up.

use std::fmt::Write as _;

use lind_passes::{Fork, Options};
use wasmtime::{Config, Engine, Instance, Module, Store};

const ONLY: Options = Options { memory: false, loops: false, fpcast: false, fork: Fork::Never };

fn engine() -> Engine {
    let mut config = Config::new();
    config.wasm_exceptions(true).wasm_function_references(true).wasm_gc(true);
    Engine::new(&config).unwrap()
}

/// A program that notes where it comes by in a number: `$note`. `body` may branch to `$out`.
fn program(body: &str) -> String {
    format!(
        r#"(module (tag $cpp (param i32)) (tag $longjmp (param i32)) (global $seen (mut i32) (i32.const 17)) (global $fuel (mut i32) (i32.const 200))
        (func $note (param i32) (global.set $seen (i32.add (i32.mul (global.get $seen) (i32.const 31)) (local.get 0))))
        (func $spend (result i32) (global.set $fuel (i32.sub (global.get $fuel) (i32.const 1))) (i32.gt_s (global.get $fuel) (i32.const 0)))
        (func (export "__wasm_longjmp") (param i32) (throw $longjmp (local.get 0)))
        (func $body (param $x i32) (block $out {body}))
        (func (export "run") (param $x i32) (result i32)
            (block $caught (result i32 exnref)
                (try_table (catch_ref $cpp $caught) (catch_ref $longjmp $caught) (call $body (local.get $x)))
                (return (global.get $seen)))
            drop (i32.const 1000) i32.add call $note (global.get $seen)))"#
    )
}

/// The results of `run` for these arguments, before and after the pass.
fn both(engine: &Engine, text: &str, arguments: &[i32]) -> [Vec<i32>; 2] {
    let before = wat::parse_str(text).unwrap();
    let after = lind_passes::run(&before, &ONLY).unwrap();
    assert_eq!(lind_passes::run(&after, &ONLY).unwrap(), after, "once more");
    [before, after].map(|bytes| {
        let module = Module::new(engine, bytes).unwrap();
        let run = |argument: &i32| {
            let mut store = Store::new(engine, ());
            let instance = Instance::new(&mut store, &module, &[]).unwrap();
            instance.get_typed_func::<i32, i32>(&mut store, "run").unwrap().call(&mut store, *argument).unwrap()
        };
        arguments.iter().map(run).collect()
    })
}

struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }

    /// Statements; `labels` may be branched to.
    fn statements(&mut self, depth: u32, labels: &mut Vec<String>, text: &mut String) {
        for _ in 0..=self.below(3) {
            let note = self.below(1000);
            let _ = write!(text, "(call $note (i32.const {note}))");
            let bit = self.below(8);
            let chosen = format!("(i32.and (i32.shr_u (local.get $x) (i32.const {bit})) (i32.const 1))");
            let label = labels[usize::try_from(self.below(labels.len() as u64)).unwrap()].clone();
            let name = format!("$l{}", self.0);
            match self.below(if depth == 0 { 4 } else { 9 }) {
                0 => drop(write!(text, "(br_if {label} (i32.and {chosen} (call $spend)))")),
                1 => drop(write!(text, "(if {chosen} (then (throw $cpp (i32.const {note}))))")),
                2 => {
                    let other = &labels[usize::try_from(self.below(labels.len() as u64)).unwrap()];
                    let table = format!("(br_table {label} {other} $out (i32.and (local.get $x) (i32.const 3)))");
                    let _ = write!(text, "(if (i32.and {chosen} (call $spend)) (then {table}))");
                }
                3 => {}
                4 | 5 => {
                    let kind = ["block", "loop"][usize::try_from(self.below(2)).unwrap()];
                    let _ = write!(text, "({kind} {name} ");
                    labels.push(name);
                    self.statements(depth - 1, labels, text);
                    labels.pop();
                    text.push(')');
                }
                kind => {
                    let (catch, left) = [("catch_all_ref", ""), ("catch_ref $cpp", "i32 ")][usize::from(kind == 6)];
                    let _ = write!(
                        text,
                        "(block {name}o (block {name} (result {left}exnref) (try_table {name}t ({catch} {name}) "
                    );
                    labels.extend([format!("{name}o"), format!("{name}t")]);
                    self.statements(depth - 1, labels, text);
                    labels.pop();
                    let _ = write!(text, ") (br {name}o)) ");
                    labels.pop();
                    let note = format!("(call $note (i32.const {note}))");
                    let end = if self.below(2) == 0 { "throw_ref" } else { "drop" };
                    let _ =
                        write!(text, "{note} {end} {}", if end == "drop" && !left.is_empty() { "drop" } else { "" });
                    text.push(')');
                }
            }
        }
    }
}

#[test]
fn exceptions_go_as_they_went() {
    let engine = engine();
    for seed in 0..120 {
        let mut body = String::new();
        Random(seed).statements(5, &mut vec!["$out".to_owned()], &mut body);
        let [before, after] = both(&engine, &program(&body), &(0..256).step_by(7).collect::<Vec<_>>());
        assert_eq!(before, after, "seed {seed}: {body}");
    }
}

#[test]
fn longjmp_passes_by_what_is_cleaned_up() {
    let engine = engine();
    let cleanup = |inner: &str, note: u32| {
        format!(
            "(block $d{note} (result exnref) (try_table (catch_all_ref $d{note}) {inner}) (return)) (call $note (i32.const {note})) throw_ref"
        )
    };
    let throw = "(if (local.get $x) (then (throw $longjmp (i32.const 5))) (else (throw $cpp (i32.const 5))))";
    let [before, after] = both(&engine, &program(&cleanup(&cleanup(throw, 1), 2)), &[0, 1]);
    assert_eq!(before[0], before[1], "the compiler makes no difference");
    let noted = |notes: &[i32]| notes.iter().fold(17i32, |seen, note| seen.wrapping_mul(31).wrapping_add(*note));
    assert_eq!(after, [noted(&[1, 2, 1005]), noted(&[1005])]);
    // A clause for longjmp alone stays, and a clause in front of all others decides.
    let own = |clauses: &str| {
        format!(
            "(block $h (result i32 exnref) (block $all (result exnref) (try_table {clauses} {throw}) (return)) (call $note (i32.const 7)) drop (return)) drop call $note"
        )
    };
    for clauses in ["(catch_ref $longjmp $h) (catch_all_ref $all)", "(catch_all_ref $all) (catch_ref $longjmp $h)"] {
        let [before, after] = both(&engine, &program(&own(clauses)), &[0, 1]);
        assert_eq!(before[0], after[0]);
        let wanted = if clauses.starts_with("(catch_ref") { noted(&[5]) } else { noted(&[1005]) };
        assert_eq!(after[1], wanted, "{clauses}");
    }
}

#[test]
fn functions_that_no_compiler_of_c_makes_stay_as_they_are() {
    let cast = "(br_on_cast $o anyref i31ref (ref.i31 (i32.const 1))) drop";
    let body = format!(
        "(block $o (result i31ref) (block $h (result exnref) (try_table (catch_all_ref $h) {cast}) (return)) throw_ref) drop (call $note (i32.const 3))"
    );
    let [before, after] = both(&engine(), &program(&body), &[0]);
    assert_eq!(before, after);
}

#[test]
fn programs_without_longjmp_stay_as_they_are() {
    let text = program(
        "(block $h (result exnref) (try_table (catch_all_ref $h) (call $note (i32.const 1))) (return)) throw_ref",
    );
    // Also where somebody else's function has that name.
    let other =
        text.replace("(throw $longjmp (local.get 0))", "(throw $other)").replace("(tag $cpp", "(tag $other) (tag $cpp");
    for text in [text.replace("__wasm_longjmp", "other"), other] {
        let bytes = wat::parse_str(text).unwrap();
        assert_eq!(lind_passes::run(&bytes, &ONLY).unwrap(), bytes);
    }
}
