//! The function-pointer pass: well-typed programs do the same, mismatched calls do what x86-64
//! does.

use std::process::Command;
use std::sync::LazyLock;

use lind_passes::Options;
use wasmtime::{Engine, Instance, Module, Store, Trap, Val};

/// The section that linkers add when asked for relocations; here it has none.
const LINKED: &str = r#"(module (@custom "linking" "\02")"#;
const ONLY: Options = Options { memory: false, loops: false, fpcast: true, fork: lind_passes::Fork::Never };

fn engine() -> &'static Engine {
    static ENGINE: LazyLock<Engine> = LazyLock::new(|| {
        let mut config = wasmtime::Config::new();
        config.wasm_function_references(true).wasm_gc(true);
        Engine::new(&config).unwrap()
    });
    &ENGINE
}

fn call(bytes: &[u8], name: &str, args: &[Val]) -> Result<Vec<String>, Trap> {
    let engine = engine();
    let mut store = Store::new(engine, ());
    let instance = Instance::new(&mut store, &Module::new(engine, bytes).unwrap(), &[]).unwrap();
    let func = instance.get_func(&mut store, name).unwrap();
    let mut results = vec![Val::I32(0); func.ty(&store).results().len()];
    match func.call(&mut store, args, &mut results) {
        Ok(()) => Ok(results.iter().map(|value| format!("{value:?}")).collect()),
        Err(error) => Err(*error.downcast_ref::<Trap>().unwrap()),
    }
}

const FUNCTIONS: &str = r#"(module (@custom "linking" "\02")
    (type $i (func (param i32) (result i32)))
    (type $ii (func (param i32 i32) (result i32)))
    (type $v (func))
    (type $L (func (param i64) (result i64)))
    (type $mixed (func (param f64 i32 f32 i64) (result f64)))
    (type $fi (func (param f32 i32) (result f32)))
    (type $vec (func (param v128)))
    (type $two (func (param i32) (result i64 i32)))
    (type $also-i (func (param i32) (result i32)))
    (global $ran (mut i32) (i32.const 0))
    (table $t 16 16 funcref)
    ;; As the pass puts them.
    (elem (i32.const 1) $inc $inc2 $sub $note $long $mix $fun $vector $both)
    (func $inc (type $i) (i32.add (local.get 0) (i32.const 1)))
    (func $inc2 (type $also-i) (i32.add (local.get 0) (i32.const 2)))
    (func $sub (type $ii) (i32.sub (local.get 0) (local.get 1)))
    (func $note (type $v) (global.set $ran (i32.const 7)))
    (func $long (type $L) (i64.add (local.get 0) (i64.const 0x100000001)))
    (func $mix (type $mixed) (f64.add (f64.add (local.get 0) (f64.convert_i32_s (local.get 1)))
        (f64.add (f64.promote_f32 (local.get 2)) (f64.convert_i64_s (local.get 3)))))
    (func $fun (type $fi) (f32.add (local.get 0) (f32.convert_i32_s (local.get 1))))
    (func $vector (type $vec))
    (func $both (type $two) (i64.extend_i32_s (local.get 0)) (i32.const 3))
    (func (export "i") (param i32 i32) (result i32) (call_indirect $t (type $i) (local.get 1) (local.get 0)))
    (func (export "tail") (param i32 i32) (result i32) (return_call_indirect $t (type $i) (local.get 1) (local.get 0)))
    (func (export "ii") (param i32 i32 i32) (result i32) (call_indirect $t (type $ii) (local.get 1) (local.get 2) (local.get 0)))
    (func (export "v") (param i32) (result i32) (call_indirect $t (type $v) (local.get 0)) (global.get $ran))
    (func (export "L") (param i32 i64) (result i64) (call_indirect $t (type $L) (local.get 1) (local.get 0)))
    (func (export "mixed") (param i32 f64 i32 f32 i64) (result f64)
        (call_indirect $t (type $mixed) (local.get 1) (local.get 2) (local.get 3) (local.get 4) (local.get 0)))
    (func (export "fi") (param i32 f32 i32) (result f32) (call_indirect $t (type $fi) (local.get 1) (local.get 2) (local.get 0)))
    (func (export "two") (param i32 i32) (result i64 i32) (call_indirect $t (type $two) (local.get 1) (local.get 0))))"#;

const I: fn(i32) -> Val = Val::I32;

fn both() -> (Vec<u8>, Vec<u8>) {
    let before = wat::parse_str(FUNCTIONS).unwrap();
    let after = lind_passes::run(&before, &ONLY).unwrap();
    (before, after)
}

#[test]
fn well_typed_calls_and_traps_stay() {
    let (before, after) = both();
    for (name, args) in [
        ("i", vec![I(1), I(41)]),
        ("i", vec![I(2), I(40)]),
        ("tail", vec![I(1), I(41)]),
        ("ii", vec![I(3), I(7), I(3)]),
        ("v", vec![I(4)]),
        ("L", vec![I(5), Val::I64(-2)]),
        ("mixed", vec![I(6), Val::F64(1.5f64.to_bits()), I(-3), Val::F32(0.25f32.to_bits()), Val::I64(1 << 40)]),
        ("fi", vec![I(7), Val::F32(1.5f32.to_bits()), I(2)]),
        ("two", vec![I(9), I(-5)]),
    ] {
        let expected = call(&before, name, &args);
        assert!(expected.is_ok(), "{name}");
        assert_eq!(call(&after, name, &args), expected, "{name}");
    }
    for (name, args, trap) in [
        ("i", vec![I(0), I(1)], Trap::IndirectCallToNull),
        ("tail", vec![I(0), I(1)], Trap::IndirectCallToNull),
        ("i", vec![I(16), I(1)], Trap::TableOutOfBounds),
        ("v", vec![I(-1)], Trap::TableOutOfBounds),
        ("v", vec![I(15)], Trap::IndirectCallToNull),
        ("i", vec![I(8), I(1)], Trap::BadSignature), // a vector is not adapted
    ] {
        assert_eq!(call(&before, name, &args), Err(trap), "{name}");
        assert_eq!(call(&after, name, &args), Err(trap), "{name}");
    }
}

#[test]
fn mismatched_calls_reach_the_function() {
    let (before, after) = both();
    let float = |x: f32| Val::F32(x.to_bits());
    let double = |x: f64| Val::F64(x.to_bits());
    for (name, args, expected) in [
        ("ii", vec![I(1), I(41), I(5)], "I32(42)"), // a surplus argument
        ("i", vec![I(3), I(9)], "I32(9)"),          // a missing one is 0
        ("v", vec![I(1)], "I32(0)"),                // the result is dropped
        ("i", vec![I(4), I(9)], "I32(0)"),          // a missing result is 0
        ("i", vec![I(5), I(-1)], "I32(0)"),         // 0xffffffff + 0x100000001, cut
        ("L", vec![I(1), Val::I64(-1)], "I64(0)"),  // cut, and extended with zeros
        ("L", vec![I(1), Val::I64(-3)], "I64(4294967294)"),
        ("tail", vec![I(3), I(9)], "I32(9)"),
        ("fi", vec![I(1), float(1.0), I(4)], "F32(0)"), // integer result, none in a float register
        ("two", vec![I(1), I(4)], "I64(5)"),
    ] {
        assert_eq!(call(&before, name, &args), Err(Trap::BadSignature), "{name} {args:?}");
        assert_eq!(call(&after, name, &args).unwrap()[0], expected, "{name} {args:?}");
    }
    // Integers and floats are counted apart; a float keeps its low bits.
    let low = f32::from_bits(u32::try_from(2.1f64.to_bits() & 0xffff_ffff).unwrap());
    let sum = f64::from_bits(u64::from((low + 8.0).to_bits()));
    let got = call(&after, "mixed", &[I(7), double(2.1), I(8), float(9.0), Val::I64(3)]).unwrap();
    assert_eq!(got, [format!("{:?}", Val::F64(sum.to_bits()))]);
}

#[test]
fn modules_that_need_nothing_or_hide_something_stay() {
    let call = r#"(type $i (func (param i32) (result i32))) (type $v (func)) (func $f (type $i) (local.get 0)) (func $g (type $v))
        (func (export "g") (param i32) (result i32) (call_indirect (type $i) (local.get 0) (i32.const 0)))"#;
    let changes = |linked: bool, text: &str| {
        let text = format!("{call} {text})");
        let plain = wat::parse_str(format!("(module {text}")).unwrap();
        let bytes = if linked { wat::parse_str(format!("{LINKED} {text}")).unwrap() } else { plain.clone() };
        lind_passes::run(&bytes, &ONLY).unwrap() != plain
    };
    assert!(changes(true, "(table 4 funcref) (elem (i32.const 0) $f $g)"));
    for (linked, stays) in [
        (false, "(table 4 funcref) (elem (i32.const 0) $f $g)"), // who knows where pointers are?
        (true, "(table 4 funcref) (elem (i32.const 0) $f)"),
        (true, "(import \"x\" \"t\" (table 4 funcref)) (elem (i32.const 0) $f $g)"),
        (true, "(table 4 funcref) (elem (i32.const 0) $f) (elem (i32.const 1) $g)"),
        (true, "(table 4 funcref) (elem (i32.const 0) $f $g) (func (table.set (i32.const 1) (ref.null func)))"),
        (
            true,
            "(table 4 funcref) (elem $e func $f $g) (func (table.init $e (i32.const 0) (i32.const 0) (i32.const 2)))",
        ),
    ] {
        let stays = match stays.strip_prefix("(import") {
            // Imports come before functions.
            Some(rest) => {
                let (import, rest) = rest.split_once(") (elem").unwrap();
                let text = format!("{LINKED} (import{import}) {call} (elem{rest})");
                let bytes = wat::parse_str(&text).unwrap();
                let plain = wat::parse_str(text.replacen(LINKED, "(module", 1)).unwrap();
                assert_eq!(lind_passes::run(&bytes, &ONLY).unwrap(), plain);
                continue;
            }
            None => stays,
        };
        assert!(!changes(linked, stays), "{stays}");
    }
}

#[test]
fn relocations_are_not_believed() {
    let module = |more: &str| {
        let text = format!(
            r#"(module (type $v (func)) (type $i (func (param i32) (result i32))) (table 4 funcref) (elem (i32.const 1) $g $f $f2)
            (func $g (type $v)) (func $f (type $i) (local.get 0)) (func $f2 (type $i) (i32.const 1)) (export "f" (func $f)) {more})"#
        );
        lind_passes::run(&wat::parse_str(text).unwrap(), &ONLY).map_err(|error| format!("{error:#}"))
    };
    let linking = r#"(@custom "linking" "\02")"#;
    assert!(module(linking).is_ok());
    for (relocations, words) in [
        (r"\00\01\01\ff\ff\03\00", "beyond"),
        (r"\00\01\01\03\00", "without a pointer"),
        (r"\00\01\0c\03\00", "-fPIC"),
        (r"\00\05\01\03\00", ""),
        (r"\00", ""),
    ] {
        let error = module(&format!(r#"{linking} (@custom "reloc.CODE" "{relocations}")"#)).unwrap_err();
        assert!(error.contains(words), "{relocations}: {error}");
    }
    assert!(module(&format!(r#"{linking} (@custom "reloc.DATA" "\00\00")"#)).is_err(), "of data that is not there");
    assert!(module(r#"(@custom "linking" "\07")"#).is_err(), "an unknown version");
}

#[test]
fn names_and_other_passes_go_along() {
    let wat = FUNCTIONS.replacen(
        "(module",
        "(module (memory 1 1 shared) (func $wait (loop $l (br_if $l (i32.load (i32.const 8)))))",
        1,
    );
    let out = lind_passes::run(&wat::parse_str(&wat).unwrap(), &Options::default()).unwrap();
    let text = wasmprinter::print_bytes(&out).unwrap();
    for words in ["__lind_call_indirect", "func $inc ", "func $both ", "i32.atomic.load", "(export \"memory\""] {
        assert!(text.contains(words), "{words}: {text}");
    }
    for words in ["linking", "reloc."] {
        assert!(!text.contains(words), "{words}: {text}");
    }
    assert_eq!(lind_passes::run(&out, &Options::default()).unwrap(), out, "a second run changed something");
}

/// A random program of functions of several types that call each other through a table: by the
/// right types, and now and then beyond the table or at an empty place.
fn random_program(seed: u64) -> String {
    let mut state = seed;
    let mut below = move |n: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        usize::try_from(state >> 33).unwrap() % n
    };
    const VALUES: [&str; 4] = ["i32", "i64", "f32", "f64"];
    let mut types: Vec<(Vec<&str>, &str)> = Vec::new();
    while types.len() < 6 {
        let ty = ((0..below(5)).map(|_| VALUES[below(4)]).collect(), VALUES[below(4)]);
        if !types.contains(&ty) {
            types.push(ty);
        }
    }
    // In the order in which the pass puts them: the commonest types first.
    let mut counts = [0; 6];
    (0..14).for_each(|_| counts[below(6)] += 1);
    counts.sort_unstable_by_key(|&count| std::cmp::Reverse(count));
    let of: Vec<usize> = (0..6).flat_map(|ty| std::iter::repeat_n(ty, counts[ty])).collect();
    let mut text = "(module (@custom \"linking\" \"\\02\") (global $fuel (mut i32) (i32.const 300)) (global $sum (export \"sum\") (mut i64) (i64.const 0)) (table 20 20 funcref)\n".to_owned();
    for (n, (params, result)) in types.iter().enumerate() {
        text += &format!("(type $t{n} (func (param {}) (result {result})))\n", params.join(" "));
    }
    let names: Vec<String> = (0..of.len()).map(|n| format!("$f{n}")).collect();
    text += &format!("(elem (i32.const 0) {})\n", names.join(" "));
    let widen = |ty: &str| match ty {
        "i32" => "i64.extend_i32_s",
        "i64" => "(i64.const 5) i64.rotl",
        "f32" => "i64.trunc_sat_f32_s",
        _ => "i64.trunc_sat_f64_s",
    };
    for (n, ty) in of.iter().enumerate() {
        let (params, result) = &types[*ty];
        text += &format!("(func $f{n} (export \"f{n}\") (type $t{ty})\n");
        text += "(if (i32.eqz (global.get $fuel)) (then (unreachable))) (global.set $fuel (i32.sub (global.get $fuel) (i32.const 1)))\n";
        for (at, param) in params.iter().enumerate() {
            text += &format!(
                "(global.set $sum (i64.add (i64.mul (global.get $sum) (i64.const 31)) (local.get {at}) {}))\n",
                widen(param)
            );
        }
        for _ in 0..below(3) {
            let callee = below(of.len());
            let (wants, gives) = &types[of[callee]];
            let place = if below(15) == 0 { 14 + below(9) } else { callee };
            text += "(if (i32.and (global.get $fuel) (i32.const 1)) (then\n";
            for want in wants {
                text += &format!("({want}.const {}) ", below(1000));
            }
            text += &format!(
                "(call_indirect (type $t{}) (i32.const {place})) {} (global.set $sum (i64.xor (global.get $sum)))))\n",
                of[callee],
                widen(gives)
            );
        }
        text += &format!("({result}.const {}))\n", below(1000));
    }
    text + ")"
}

#[test]
fn random_well_typed_programs_do_the_same() {
    let (mut returned, mut trapped) = (0, 0);
    for seed in 0..25 {
        let before =
            wat::parse_str(random_program(seed)).unwrap_or_else(|error| panic!("{error}\n{}", random_program(seed)));
        let after = lind_passes::run(&before, &ONLY).unwrap();
        assert_ne!(before, after);
        let outcome = |bytes: &[u8]| -> Vec<String> {
            let module = Module::new(engine(), bytes).unwrap();
            (0..14)
                .map(|n| {
                    let mut store = Store::new(engine(), ());
                    let instance = Instance::new(&mut store, &module, &[]).unwrap();
                    let function = instance.get_func(&mut store, &format!("f{n}")).unwrap();
                    let args: Vec<Val> =
                        function.ty(&store).params().map(|ty| Val::default_for_ty(&ty).unwrap()).collect();
                    let mut results = [Val::I32(0)];
                    let said = match function.call(&mut store, &args, &mut results) {
                        Ok(()) => format!("{results:?}"),
                        Err(error) => format!("{:?}", error.downcast_ref::<Trap>()),
                    };
                    format!("{said} {:?}", instance.get_global(&mut store, "sum").unwrap().get(&mut store))
                })
                .collect()
        };
        let was = outcome(&before);
        returned += was.iter().filter(|said| said.starts_with('[')).count();
        trapped += was.iter().filter(|said| said.contains("TableOutOfBounds") || said.contains("Null")).count();
        assert_eq!(was, outcome(&after), "seed {seed}");
    }
    assert!(returned > 100 && trapped > 10, "{returned} returned, {trapped} trapped");
}

/// A program whose calls all go through pointers of a wrong type. `run(n)` is the n-th.
const SOURCE: &str = r#"
typedef long long L;
int calls;
int add(int a, int b) { return a + b; }
int one(int a) { return a * 3; }
int none(void) { return 99; }
void note(int a) { calls += a; }
L wide(L a) { return a + 1; }
L wide2(L a, int b) { return a * b; }
double fd(double a, int b) { return a * b; }
double ddd(double a, double b) { return a - b; }
int mixed(int a, double b, int c, double d) { return a * 1000 + c * 100 + (int)(b * 10) + (int)d; }
int compare(const int *a, const int *b) { return *a - *b; }
unsigned char byte(unsigned char c) { return c + 1; }
void *same(void *p) { return p; }

#define CALL(type, f, ...) (((type)table[f])(__VA_ARGS__))
typedef void (*any)(void);
any volatile table[] = { (any)add, (any)one, (any)none, (any)note, (any)wide, (any)wide2, (any)fd, (any)ddd, (any)mixed, (any)compare, (any)byte, (any)same };
enum { ADD, ONE, NONE, NOTE, WIDE, WIDE2, FD, DDD, MIXED, COMPARE, BYTE, SAME };
any volatile *pointers[] = { 0, table + ADD, table + ONE };
__attribute__((noinline)) any choose(int n) { return n == 3 ? (any)wide : n == 18 ? (any)one : (any)none; }

L run(int n) {
    static int x[2] = { 30, 12 };
    switch (n) {
    case 0: return CALL(int (*)(int, int, int), ADD, 3, 4, 5);
    case 1: return CALL(int (*)(int, int), ONE, 7, 8);
    case 2: return CALL(int (*)(int), NONE, 1);
    case 3: CALL(int (*)(int), NOTE, 5); return calls;
    case 4: CALL(void (*)(int, void *, void *), NOTE, 6, x, x); return calls;
    case 5: return CALL(unsigned (*)(unsigned), WIDE, 0xfffffff0u);
    case 6: return CALL(L (*)(unsigned), WIDE, 0xfffffff0u);
    case 7: return CALL(L (*)(L, L), WIDE2, 1LL << 33, 3LL);
    case 8: return (L)CALL(double (*)(int, double), FD, 6, 1.5);
    case 9: return (L)CALL(double (*)(double, int, double), DDD, 9.5, 77, 2.5);
    case 10: return CALL(int (*)(double, double, int, int), MIXED, 0.5, 4.0, 2, 3);
    case 11: return CALL(int (*)(void *, void *, void *), COMPARE, x, x + 1, x);
    case 12: return CALL(int (*)(int, int), BYTE, 41, 0) & 0xff;
    case 13: return CALL(int (*)(double, int), ONE, 2.5, 11);
    case 14: CALL(void (*)(int, int), ADD, 1, 2); return calls;
    case 15: return (int)CALL(L (*)(int, int), ADD, 20, 3);
    case 16: return CALL(int (*)(L, L), ADD, 5LL, (7LL << 32) + 2);
    case 17: { any volatile f = n > 3 ? (any)add : (any)one; return f != table[ADD] ? -1 : ((int (*)(int, int, int))f)(5, 6, 7); }
    case 18: return ((int (*)(int, int))choose(n))(8, 1) * 2 + (choose(n) == table[ONE]);
    case 19: return ((int (*)(int, int))*pointers[2])(9, 1) * 2 + (pointers[0] == 0 && pointers[1] == table + ADD);
    default: return -12345;
    }
}
"#;
const CASES: i32 = 20;

#[test]
fn c_programs_do_what_they_do_on_x86_64() {
    let dir = tempfile::tempdir().unwrap();
    let run = |program: &str, args: &[&str]| {
        let output = Command::new(program).args(args).current_dir(dir.path()).output();
        let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
        assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    std::fs::write(dir.path().join("t.c"), SOURCE).unwrap();
    let main = format!(
        "long long run(int);\nint printf(const char *, ...);\nint main(void) {{ for (int i = 0; i < {CASES}; i++) printf(\"%lld\\n\", run(i)); }}\n"
    );
    std::fs::write(dir.path().join("main.c"), main).unwrap();
    for level in ["-O0", "-O2"] {
        run("clang-22", &["-w", level, "t.c", "main.c", "-o", "native"]);
        let native = run("./native", &[]);
        run(
            "clang-22",
            &[
                "--target=wasm32-unknown-unknown",
                "-w",
                level,
                "-matomics",
                "-mbulk-memory",
                "-nostdlib",
                "-c",
                "t.c",
                "-o",
                "t.o",
            ],
        );
        run(
            "wasm-ld-22",
            &[
                "--shared-memory",
                "--max-memory=4294967296",
                "--global-base=65536",
                "--no-entry",
                "--emit-relocs",
                "--export=run",
                "t.o",
                "-o",
                "t.wasm",
            ],
        );
        let linked = std::fs::read(dir.path().join("t.wasm")).unwrap();
        let bytes = lind_passes::run(&linked, &Options::default()).unwrap();
        let plain = lind_passes::run(&linked, &Options { fpcast: false, ..Options::default() }).unwrap();

        let engine = engine();
        let mut store = Store::new(engine, ());
        let instance = Instance::new(&mut store, &Module::new(engine, bytes).unwrap(), &[]).unwrap();
        let function = instance.get_typed_func::<i32, i64>(&mut store, "run").unwrap();
        for (n, expected) in (0..CASES).zip(native.lines()) {
            let got = function.call(&mut store, n).unwrap_or_else(|error| panic!("{level}, case {n}: {error:?}"));
            assert_eq!(got.to_string(), expected, "{level}, case {n}");
            assert_eq!(call(&plain, "run", &[I(n)]), Err(Trap::BadSignature), "{level}, case {n} is no mismatch");
        }
    }
}
