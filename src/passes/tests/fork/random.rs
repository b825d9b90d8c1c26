//! Random programs: of wasm-smith, which knows every instruction, and of our own, which come far
//! before they trap.
#![allow(clippy::print_stdout, reason = "the test harness shows it where a test fails")]

use std::collections::HashMap;

use arbitrary::Unstructured;
use lind_passes::{Fork, Options};
use wasmtime::{Engine, ExternType, ValType};

use super::harness::{Forks, ONLY, When, Where, assert_same, both, engine, run};
use super::programs::{Random, program};

/// The forks that were done and refused, and how many entries returned.
#[derive(Default, Debug)]
struct Seen {
    runs: u32,
    forks: Forks,
    returned: u32,
}

/// How many programs each generator makes: LIND_FORK_PROGRAMS, or a few. The engine compiles slowly
/// when it was itself compiled without optimisation.
fn programs() -> u64 {
    let usual = if cfg!(debug_assertions) { 60 } else { 150 };
    std::env::var("LIND_FORK_PROGRAMS").map_or(usual, |wanted| wanted.parse().expect("LIND_FORK_PROGRAMS is a number"))
}

impl Seen {
    /// Otherwise that everything was the same says little.
    fn says_much(&self) -> bool {
        let programs = u32::try_from(programs()).unwrap();
        self.runs > 4 * programs
            && self.forks.done > 40 * programs
            && self.forks.refused > programs / 15
            && self.returned > programs / 3
    }
}

/// Runs each entry of a program, forking here and there.
fn try_out(engine: &Engine, bytes: &[u8], options: &Options, entries: &[String], random: &mut Random, seen: &mut Seen) {
    let modules = both(engine, bytes, options);
    let text = || wasmprinter::print_bytes(bytes).unwrap();
    for entry in entries {
        let expected = run(engine, &modules.0, entry, When::Never, Where::Same).0;
        seen.returned += u32::from(expected.end == "returned");
        if expected.calls == 0 {
            continue;
        }
        let some = |random: &mut Random| When::At(1 + random.below(expected.calls));
        let place =
            |random: &mut Random| if movable(&modules.1) && random.below(2) == 0 { Where::New } else { Where::Same };
        let whens = [
            When::Never,
            When::Always,
            When::Mask(random.next()),
            some(random),
            some(random),
            When::At(expected.calls),
        ];
        for when in whens {
            let place = place(random);
            let (outcome, forks) = run(engine, &modules.1, entry, when, place);
            if outcome != expected {
                println!("{}", text());
                assert_same(&outcome, &expected, &format!("{entry} forks {when:?} and goes on in {place:?}"));
            }
            seen.runs += 1;
            seen.forks.done += forks.done;
            seen.forks.refused += forks.refused;
        }
    }
}

/// Whether a new instance can go on in place of another: the harness copies memory and globals.
fn movable(module: &wasmtime::Module) -> bool {
    module.get_export("movable").is_some()
}

#[test]
fn our_programs_do_the_same() {
    let (engine, mut seen) = (engine(), Seen::default());
    for index in 0..programs() {
        let mut random = Random::new(index);
        let bytes = wat::parse_str(program(&mut random)).unwrap();
        let options = Options { fpcast: index % 3 == 1, loops: index % 3 == 2, ..ONLY };
        try_out(&engine, &bytes, &options, &["run".to_owned()], &mut random, &mut seen);
    }
    println!("{seen:?}");
    assert!(seen.says_much(), "{seen:?}");
}

#[test]
fn other_peoples_programs_do_the_same() {
    let (engine, mut seen) = (engine(), Seen::default());
    for index in 0..programs() {
        let mut random = Random::new(1000 + index);
        let (bytes, entries) = generate(&engine, &mut random);
        let options = Options { fork: if index % 4 == 0 { Fork::Always } else { Fork::Auto }, ..ONLY };
        try_out(&engine, &bytes, &options, &entries, &mut random, &mut seen);
    }
    println!("{seen:?}");
    assert!(seen.says_much(), "{seen:?}");
}

/// A module of wasm-smith that forks, with entries that take nothing and note what they are given.
fn generate(engine: &Engine, random: &mut Random) -> (Vec<u8>, Vec<String>) {
    let bytes: Vec<u8> = std::iter::repeat_with(|| random.next().to_le_bytes()[3]).take(3000).collect();
    let config = wasm_smith::Config {
        max_imports: 0,
        export_everything: true,
        canonicalize_nans: true,
        min_memories: 1,
        max_memories: 1,
        memory64_enabled: false,
        shared_everything_threads_enabled: false,
        gc_enabled: random.below(3) == 0,
        min_funcs: 3,
        max_funcs: 6,
        max_types: 12,
        max_globals: 8,
        max_tags: 3,
        max_elements: 8,
        max_element_segments: 4,
        max_data_segments: 6,
        max_instructions: 200,
        max_table_elements: 1000,
        table_max_size_required: true,
        allow_start_export: false,
        disallow_traps: random.below(4) != 0,
        ..wasm_smith::Config::default()
    };
    let mut module = wasm_smith::Module::new(config, &mut Unstructured::new(&bytes)).unwrap();
    module.ensure_termination(1000).unwrap();
    with_forks(engine, &module.to_bytes(), random)
}

/// More forks at random places, whose results are mixed into a global; and entries.
fn with_forks(engine: &Engine, bytes: &[u8], random: &mut Random) -> (Vec<u8>, Vec<String>) {
    let mut text = String::new();
    let named = wasmprinter::Config::new().name_unnamed(true).print(bytes, &mut wasmprinter::PrintFmtWrite(&mut text));
    named.unwrap();
    let mut out = String::new();
    let mut in_function = false;
    for line in text.lines() {
        let trimmed = line.trim_start();
        if trimmed.starts_with("(memory $") {
            out.push_str("(memory $#memory0 6 40)\n");
            continue;
        }
        in_function = in_function && line != "  )" || trimmed.starts_with("(func $");
        if in_function && !trimmed.starts_with(['(', ')']) && random.below(12) == 0 {
            out.push_str("(global.set $forks (i32.add (i32.mul (global.get $forks) (i32.const 31)) (call $fork)))\n");
        }
        out.push_str(line);
        out.push('\n');
        if line == "(module" {
            out.push_str("(import \"lind\" \"fork\" (func $fork (result i32)))\n");
        }
    }
    out.truncate(out.trim_end().len() - 1);
    out.push_str("(export \"memory\" (memory 0))\n");
    out.push_str("(global $forks (export \"forks\") (mut i32) (i32.const 0))\n");
    let entries = entries(engine, bytes, &mut out);
    let fixed = ["table.", "elem.", "data.", "memory.init", "memory.grow", "global.set"];
    let kept = text.lines().map(str::trim_start).filter(|line| fixed.iter().any(|word| line.starts_with(word))).count();
    if kept == text.matches("global.set").count() && !text.contains("(mut (ref") && !text.contains("ref)") {
        out.push_str("(global (export \"movable\") i32 (i32.const 1))\n");
    }
    out.push(')');
    let bytes = wat::parse_str(&out).unwrap_or_else(|error| panic!("{error}\n{out}"));
    (bytes, entries)
}

/// For some exported functions, one that calls it with constants and puts the results into exported
/// globals.
fn entries(engine: &Engine, bytes: &[u8], out: &mut String) -> Vec<String> {
    let module = wasmtime::Module::new(engine, bytes).unwrap();
    let mut indices: HashMap<&str, u32> = HashMap::new();
    for payload in wasmparser::Parser::new(0).parse_all(bytes) {
        let wasmparser::Payload::ExportSection(reader) = payload.unwrap() else { continue };
        indices.extend(reader.into_iter().map_while(Result::ok).map(|export| (export.name, export.index)));
    }
    let mut entries = Vec::new();
    for export in module.exports() {
        let ExternType::Func(ty) = export.ty() else { continue };
        let Some(arguments) = ty.params().map(|ty| argument(&ty)).collect::<Option<String>>() else { continue };
        let index = indices[export.name()];
        let name = format!("entry {index}");
        if entries.len() == 4 || entries.contains(&name) {
            continue;
        }
        out.push_str(&format!("(func (export \"{name}\") {arguments} (call $#func{index})"));
        let results: Vec<ValType> = ty.results().collect();
        for (at, ty) in results.iter().enumerate().rev() {
            match zero(ty) {
                Some(_) => out.push_str(&format!("(global.set $result{index}_{at})")),
                None => out.push_str("(drop)"),
            }
        }
        out.push_str(")\n");
        for (at, ty) in results.iter().enumerate() {
            if let Some(zero) = zero(ty) {
                let global = format!("result{index}_{at}");
                out.push_str(&format!("(global ${global} (export \"{global}\") (mut {ty}) ({zero}))\n"));
            }
        }
        entries.push(name);
    }
    entries
}

fn zero(ty: &ValType) -> Option<&'static str> {
    match ty {
        ValType::I32 => Some("i32.const 0"),
        ValType::I64 => Some("i64.const 0"),
        ValType::F32 => Some("f32.const 0"),
        ValType::F64 => Some("f64.const 0"),
        ValType::V128 => Some("v128.const i64x2 0 0"),
        ValType::Ref(_) => None,
    }
}

fn argument(ty: &ValType) -> Option<String> {
    Some(match ty {
        ValType::I32 => "(i32.const 82)".to_owned(),
        ValType::I64 => "(i64.const 82000000000)".to_owned(),
        ValType::F32 => "(f32.const 82.5)".to_owned(),
        ValType::F64 => "(f64.const -82.25)".to_owned(),
        ValType::V128 => "(v128.const i64x2 82 83)".to_owned(),
        ValType::Ref(ty) if ty.is_nullable() => match ty.heap_type() {
            heap if heap.is_concrete() => return None,
            heap => format!("(ref.null {heap})"),
        },
        ValType::Ref(_) => return None,
    })
}
