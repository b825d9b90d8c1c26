//! Measures the crossings: guest to kernel, and guest through grates. Prints `name param loops ns`.
//!
//! Run with `cargo run --release --example roundtrip -p lind-engine [-- WORD]`; with a word, only
//! the lines that contain it.

#![allow(clippy::print_stdout, reason = "a command of its own")]

#[path = "../tests/common/mod.rs"]
mod common;

use std::time::Instant;

use common::{Runner, grate, plain, program};
use lind_kernel::cage::Status;

const LOOPS: u32 = 20_000_000;
const ROUNDS: usize = 5;

fn main() {
    let runner = Runner::new();
    let ten = "(func $ten (param i32) (result i64) (i64.const 10))";
    runner.install("ten.wasm", &grate(ten, "$ten", &[(107, 1)]));
    runner.install("forward.wasm", &grate("", "$forward", &[(107, 1)]));
    let cases: [(&str, &str, u32, &[&str]); 6] = [
        ("geteuid", "kernel", 107, &[]),
        ("getpid", "kernel", 39, &[]),
        ("nosys", "kernel", 335, &[]),
        ("geteuid", "1 grate", 107, &["ten.wasm"]),
        ("geteuid", "2 grates", 107, &["ten.wasm", "forward.wasm"]),
        ("geteuid", "3 grates", 107, &["ten.wasm", "forward.wasm", "forward.wasm"]),
    ];
    let word = std::env::args().nth(1).unwrap_or_default();
    for (name, param, number, grates) in cases {
        if !format!("{name} {param}").contains(&word) {
            continue;
        }
        runner.install("empty.wasm", &looped("(nop)", 1));
        runner.install("loop.wasm", &looped(&format!("(drop {})", plain(number)), LOOPS));
        let time = |app: &'static str| {
            let mut chain = grates.to_vec();
            chain.push(app);
            let start = Instant::now();
            assert_eq!(runner.run_chain(&chain), Status::Exited(0));
            start.elapsed().as_nanos()
        };
        time("loop.wasm");
        let best = (0..ROUNDS).map(|_| time("loop.wasm").saturating_sub(time("empty.wasm"))).min().unwrap_or(0);
        println!("{name}\t{param}\t{LOOPS}\t{:.2}", best as f64 / f64::from(LOOPS));
    }
    spawns(&runner, &word);
}

/// Starts a program and waits for it, repeatedly.
fn spawns(runner: &Runner, word: &str) {
    const SPAWNS: u32 = 2000;
    if !"spawn empty".contains(word) {
        return;
    }
    runner.install("empty.wasm", &looped("(nop)", 1));
    let wait = "(drop (call $sys3 (i32.const 61) (i64.const -1) (i64.const 0) (i64.const 0)))";
    runner.install("spawns.wasm", &common::spawner(SPAWNS, wait));
    let time = || {
        let start = Instant::now();
        assert_eq!(runner.run_chain(&["spawns.wasm", "empty.wasm"]), Status::Exited(0));
        start.elapsed().as_nanos()
    };
    time();
    let best = (0..ROUNDS).map(|_| time()).min().unwrap_or(0);
    println!("spawn\tempty\t{SPAWNS}\t{:.0}", best as f64 / f64::from(SPAWNS));
}

fn looped(body: &str, loops: u32) -> String {
    program(
        "",
        &format!(
            "(local $n i32) (local.set $n (i32.const {loops}))
            (loop $again {body} (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))"
        ),
    )
}
