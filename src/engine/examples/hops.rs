//! Measures the cost of a hop into a grate in bare Wasmtime: with a Store for each side, as the
//! engine does it, and with both in one Store. Prints `way ns`. docs/engine.md draws the
//! conclusions.
//!
//! Run with `cargo run --release --example hops -p lind-engine`.
#![allow(unsafe_code)]
#![allow(clippy::print_stdout, reason = "a command of its own")]

use std::cell::Cell;
use std::time::Instant;

use wasmtime::{Caller, Config, Engine, Func, FuncType, Instance, Linker, Module, Result, Store, ValRaw, ValType};

const LOOPS: u32 = 5_000_000;
const ROUNDS: usize = 7;
/// The address of a call in the grate's memory.
const PLACE: u32 = 1024;

const CLIENT: &str = r#"(module
    (import "lind" "syscall" (func $call (param i32 i64 i64 i64 i64 i64 i64) (result i64)))
    (func (export "run") (param $n i32) (result i64) (local $sum i64)
        (loop $again
            (local.set $sum (i64.add (local.get $sum) (call $call (i32.const 107)
                (i64.const 1) (i64.const 2) (i64.const 3) (i64.const 4) (i64.const 5) (i64.const 6))))
            (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
        (local.get $sum)))"#;

/// Answers with an argument of the call and its caller.
const GRATE: &str = r#"(module
    (memory (export "memory") 65536 65536)
    (func (export "__lind_handle") (param $entry i32) (param $call i32) (result i64)
        (i64.add (i64.load offset=24 (local.get $call)) (i64.load offset=8 (local.get $call)))))"#;

/// The code between the two in one Store: writes the call and enters through a table. `BEFORE` and
/// `AFTER` do the kernel's part.
const BETWEEN: &str = r#"(module
    (type $handle (func (param i32 i32) (result i64)))
    (import "grate" "memory" (memory 65536 65536))
    (import "grate" "__lind_handle" (func $in (type $handle)))
    (import "host" "before" (func $before (param i32 i64 i64 i64 i64 i64 i64) (result i64)))
    (import "host" "after" (func $after (param i64) (result i64)))
    (table 1 funcref)
    (elem (i32.const 0) $in)
    (func (export "syscall") (param $nr i32)
        (param $a i64) (param $b i64) (param $c i64) (param $d i64) (param $e i64) (param $f i64) (result i64)
        BEFORE
        (i32.store (i32.const 1024) (local.get $nr))
        (i64.store (i32.const 1032) (i64.const 7)) (i64.store (i32.const 1040) (i64.const 7))
        (i64.store (i32.const 1048) (local.get $a)) (i64.store (i32.const 1056) (i64.const 7))
        (i64.store (i32.const 1064) (local.get $b)) (i64.store (i32.const 1072) (i64.const 7))
        (i64.store (i32.const 1080) (local.get $c)) (i64.store (i32.const 1088) (i64.const 7))
        (i64.store (i32.const 1096) (local.get $d)) (i64.store (i32.const 1104) (i64.const 7))
        (i64.store (i32.const 1112) (local.get $e)) (i64.store (i32.const 1120) (i64.const 7))
        (i64.store (i32.const 1128) (local.get $f)) (i64.store (i32.const 1136) (i64.const 7))
        AFTER_BEGIN
        ;; An exception of the grate's is not the client's to catch.
        (block $thrown
            (return (try_table (result i64) (catch_all $thrown)
                (call_indirect (type $handle) (i32.const 107) (i32.const 1024) (i32.const 0)))))
        (unreachable)
        AFTER_END))"#;

/// The state that the host keeps for a hop and reads afterwards.
#[derive(Default)]
struct Thread {
    hops: Cell<u32>,
    attention: Cell<u32>,
}

fn main() -> Result<()> {
    let mut config = Config::new();
    config.wasm_exceptions(true).wasm_function_references(true).wasm_gc(true).generate_address_map(true);
    let engine = Engine::new(&config)?;
    println!("two Stores\t{:.1}", two_stores(&engine)?);
    println!("one Store\t{:.1}", one_store(&engine, false)?);
    println!("one Store, host calls before and after\t{:.1}", one_store(&engine, true)?);
    Ok(())
}

fn two_stores(engine: &Engine) -> Result<f64> {
    let mut store = Store::new(engine, Thread::default());
    let grate = Instance::new(&mut store, &module(engine, GRATE)?, &[])?;
    let handle = *grate.get_typed_func::<(i32, i32), i64>(&mut store, "__lind_handle")?.func();
    let memory =
        grate.get_memory(&mut store, "memory").expect("the grate exports its memory").data_ptr(&store) as usize;
    let worker = std::cell::RefCell::new(store);
    let mut linker = Linker::new(engine);
    let ty = FuncType::new(engine, [vec![ValType::I32], vec![ValType::I64; 6]].concat(), [ValType::I64]);
    // The Store of the grate belongs to this thread alone.
    let shared = Alone((worker, handle, memory));
    // SAFETY: the type fixes the values; the memory is the grate's and as large as it gets.
    unsafe {
        linker.func_new_unchecked("lind", "syscall", ty, move |caller: Caller<'_, Thread>, values| {
            let Alone((worker, handle, memory)) = &shared;
            let at = (*memory as *mut u8).add(PLACE as usize);
            at.cast::<u32>().write(values[0].assume_init_ref().get_u32());
            at.add(8).cast::<[u64; 2]>().write([7, 7]);
            for n in 0..6 {
                at.add(24 + 16 * n).cast::<[u64; 2]>().write([values[n + 1].assume_init_ref().get_u64(), 7]);
            }
            before(caller.data());
            let mut words = [ValRaw::u32(107), ValRaw::u32(PLACE)];
            let answer = handle.call_unchecked(&mut *worker.borrow_mut(), &raw mut words);
            after(caller.data());
            answer?;
            values[0].write(words[0]);
            Ok(())
        })?;
    }
    let mut store = Store::new(engine, Thread::default());
    let client = linker.instantiate(&mut store, &module(engine, CLIENT)?)?;
    time(&mut store, &client)
}

fn one_store(engine: &Engine, asked: bool) -> Result<f64> {
    let mut store = Store::new(engine, Thread::default());
    let grate = Instance::new(&mut store, &module(engine, GRATE)?, &[])?;
    let mut linker = Linker::new(engine);
    linker.instance(&mut store, "grate", grate)?;
    let words = [vec![ValType::I32], vec![ValType::I64; 6]].concat();
    // SAFETY: the types fix the values.
    let (first, last) = unsafe {
        let ty = FuncType::new(engine, words, [ValType::I64]);
        let first = Func::new_unchecked(&mut store, ty, |caller: Caller<'_, Thread>, values| {
            before(caller.data());
            values[0].write(ValRaw::i64(0));
            Ok(())
        });
        let ty = FuncType::new(engine, [ValType::I64], [ValType::I64]);
        let last = Func::new_unchecked(&mut store, ty, |caller: Caller<'_, Thread>, _| {
            after(caller.data());
            Ok(())
        });
        (first, last)
    };
    linker.define(&store, "host", "before", first)?.define(&store, "host", "after", last)?;
    let words = "(local.get $a) (local.get $b) (local.get $c) (local.get $d) (local.get $e) (local.get $f)";
    let (before, begin, end) = match asked {
        true => {
            (format!("(drop (call $before (local.get $nr) {words}))"), "(call $after (block $whole (result i64)", "))")
        }
        false => (String::new(), "", ""),
    };
    let text = BETWEEN.replace("BEFORE", &before).replace("AFTER_BEGIN", begin).replace("AFTER_END", end);
    let text = if asked { text.replace("(return (try", "(br $whole (try") } else { text };
    let between = linker.instantiate(&mut store, &module(engine, &text)?)?;
    linker.instance(&mut store, "lind", between)?;
    let client = linker.instantiate(&mut store, &module(engine, CLIENT)?)?;
    time(&mut store, &client)
}

fn module(engine: &Engine, text: &str) -> Result<Module> {
    Module::new(engine, wat::parse_str(text).expect("the text above is valid"))
}

#[inline(never)]
fn before(thread: &Thread) {
    thread.hops.set(thread.hops.get() + 1);
}

#[inline(never)]
fn after(thread: &Thread) {
    thread.hops.set(thread.hops.get() - 1);
    assert_eq!(thread.attention.get(), 0);
}

fn time(store: &mut Store<Thread>, client: &Instance) -> Result<f64> {
    let run = client.get_typed_func::<i32, i64>(&mut *store, "run")?;
    let mut best = f64::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        assert_eq!(run.call(&mut *store, LOOPS.cast_signed())?, 8 * i64::from(LOOPS));
        best = best.min(start.elapsed().as_nanos() as f64 / f64::from(LOOPS));
    }
    Ok(best)
}

/// A value that does not leave its thread.
struct Alone<T>(T);

// SAFETY: this program has one thread.
unsafe impl<T> Send for Alone<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Alone<T> {}
