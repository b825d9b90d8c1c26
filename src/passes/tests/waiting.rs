//! Watched loops end: random loops are compiled by the engine and run while another thread sets the
//! flag that they wait for.

#![allow(unsafe_code)]

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use lind_passes::Options;
use wasmtime::{Engine, Instance, Module, Store};

const ONLY: Options = Options { memory: false, loops: true, fpcast: false, fork: lind_passes::Fork::Never };
/// The flag's address, the address at which the program says that it waits, and one for other
/// stores.
const FLAG: u32 = 1024;
const READY: usize = 2048;

/// A program that says it waits, looks at the flag once, and then runs `body`, which branches to
/// `$seen` when it saw the flag set. After `rounds` it gives up. Returns whether it saw the flag.
fn program(body: &str, rounds: u32) -> String {
    format!(
        r#"(module (memory (export "memory") 2) (global $flag i32 (i32.const {FLAG})) (func $other)
        (func (export "wait") (param $p i32) (param $never i32) (param $q i32) (result i32) (local $n i32) (local $x i32) (local $y i32) (local $z i32)
            (local $m0 i32) (local $m1 i32) (local $m2 i32)
            (local.set $n (i32.const {rounds}))
            (local.set $x (local.get $p))
            (local.set $z (i32.const {FLAG}))
            (i32.store (local.get $p) (i32.const 0))
            (i32.store (i32.const {READY}) (i32.const 1))
            (drop (i32.load (local.get $p)))
            (drop (i32.load (i32.const {FLAG})))
            (block $seen (block $late
                {body}
                (br $late))
              (return (i32.const 0)))
            (i32.const 1)))"#
    )
}

/// Runs a program; a thread of the host sets the flag once the program waits.
fn sees(engine: &Engine, bytes: &[u8]) -> bool {
    let mut store = Store::new(engine, ());
    let instance = Instance::new(&mut store, &Module::new(engine, bytes).unwrap(), &[]).unwrap();
    let base = instance.get_memory(&mut store, "memory").unwrap().data_ptr(&store) as usize;
    // SAFETY: the memory outlives the scope below, both addresses are within it and aligned, and
    // compiled code is the only other user.
    let word = |address: usize| unsafe { AtomicU32::from_ptr((base + address) as *mut u32) };
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while word(READY).load(SeqCst) == 0 && !done.load(SeqCst) {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_micros(100));
            word(FLAG as usize).store(1, SeqCst);
        });
        let wait = instance.get_typed_func::<(u32, u32, u32), u32>(&mut store, "wait").unwrap();
        let seen = wait.call(&mut store, (FLAG, 0, 4096)).unwrap();
        done.store(true, SeqCst);
        seen == 1
    })
}

#[test]
fn the_flag_of_a_plain_loop_is_seen_only_with_the_pass() {
    let engine = Engine::default();
    let text = |rounds| {
        let body = "(loop $l (br_if $seen (i32.load (local.get $p))) (br_if $l (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))";
        wat::parse_str(program(body, rounds)).unwrap()
    };
    assert!(
        !sees(&engine, &text(500_000_000)),
        "the engine no longer forwards loads into loops; is the pass still needed?"
    );
    assert!(sees(&engine, &lind_passes::run(&text(2_000_000_000), &ONLY).unwrap()));
}

/// A small generator of numbers, so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }

    fn pick(&mut self, from: &[&str]) -> String {
        from[usize::try_from(self.below(from.len() as u64)).unwrap()].to_owned()
    }
}

const ADDRESSES: [&str; 10] = [
    "(local.get $z)",
    "(local.get $p)",
    "(i32.const 1024)",
    "(local.get $x)",
    "(local.tee $x (local.get $p))",
    "(global.get $flag)",
    "(block (result i32) (local.get $p))",
    "(if (result i32) (local.get $never) (then (local.get $p)) (else (local.get $p)))",
    "(i32.add (local.get $p) (i32.const 0))",
    "(select (local.get $p) (local.get $q) (i32.eqz (local.get $never)))",
];
const ROUND: &str = "(br_if $late (i32.eqz (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))";

fn look(random: &mut Random) -> String {
    let address = random.pick(&ADDRESSES);
    let load = random.pick(&["i32.load", "i32.load8_u", "i32.load16_s", "i32.wrap_i64 (i64.load"]);
    let close = if load.contains('(') { ")" } else { "" };
    format!("(br_if $seen ({load} {address}){close})")
}

/// The statements that may be in a loop beside the test of the flag.
fn noise(random: &mut Random, depth: u32) -> String {
    match random.below(if depth < 3 { 9 } else { 6 }) {
        0 => "(local.set $y (i32.add (local.get $y) (i32.const 3)))".to_owned(),
        1 => random.pick(&[
            "(local.set $x (local.get $p))",
            "(local.set $p (local.get $x))",
            "(local.set $z (i32.const 1024))",
            "(if (local.get $never) (then (local.set $x (local.get $p))))",
        ]),
        2 => "(drop (i32.load (i32.and (local.get $y) (i32.const 0xffc))))".to_owned(),
        // Off the way around: leaves the loop.
        3 => {
            let act = random.pick(&[
                "(i32.store (local.get $q) (i32.const 1))",
                "(call $other)",
                "(local.set $p (i32.const 8))",
                "(local.set $x (i32.const 8))",
                "(unreachable)",
            ]);
            format!("(if (local.get $never) (then {act} (br $late)))")
        }
        // On a way around, though never taken.
        4 => {
            let act = random.pick(&["(i32.store (local.get $q) (i32.const 1))", "(call $other)", "(nop)"]);
            format!("(if (local.get $never) (then {act}))")
        }
        5 => "(global.get $flag) (local.set $y)".to_owned(),
        6 => format!(
            "(block {} {} {})",
            noise(random, depth + 1),
            random.pick(&["(br_if 0 (local.get $y))", "(nop)"]),
            noise(random, depth + 1)
        ),
        7 => format!("(loop {} (br_if 0 (local.get $never)))", noise(random, depth + 1)),
        _ => {
            let label = random.below(1000);
            let inner = if random.below(2) == 0 { look(random) } else { noise(random, depth + 1) };
            let times = format!("$m{depth}");
            format!(
                "(local.set {times} (i32.const 5)) (loop $i{label} {inner} {ROUND} (br_if $i{label} (local.tee {times} (i32.sub (local.get {times}) (i32.const 1)))))"
            )
        }
    }
}

#[test]
fn the_flag_is_seen_by_random_loops() {
    let engine = Engine::default();
    for seed in 0..400 {
        let mut random = Random(seed * 7919 + 1);
        let before: String = (0..random.below(4)).map(|_| noise(&mut random, 0)).collect();
        let after: String = (0..random.below(4)).map(|_| noise(&mut random, 0)).collect();
        let back = random.pick(&["(br_if $l (local.get $never))", ""]);
        let body = format!("(loop $l {before} {} {back} {after} {ROUND} (br $l))", look(&mut random));
        let bytes = wat::parse_str(program(&body, 1_000_000_000)).unwrap();
        let out = lind_passes::run(&bytes, &ONLY).unwrap();
        assert!(sees(&engine, &out), "seed {seed}: {body}");
    }
}
