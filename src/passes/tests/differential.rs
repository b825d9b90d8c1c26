//! Random modules do the same before and after the passes.

#![allow(unsafe_code)]

use arbitrary::Unstructured;
use lind_passes::Options;
use wasmtime::{Config, Engine, Extern, ExternType, Instance, Module, SharedMemory, Store, Trap, Val, ValType};

/// The effects of a call: its results or trap, the globals, the memory.
#[derive(PartialEq, Debug)]
struct Outcome {
    call: String,
    globals: Vec<String>,
    memory: Vec<u8>,
}

/// How much of the memory is compared.
const WINDOW: usize = 1 << 18;

fn engine() -> Engine {
    let mut config = Config::new();
    config
        .shared_memory(true)
        .wasm_exceptions(true)
        .wasm_gc(true)
        .wasm_function_references(true)
        .relaxed_simd_deterministic(true);
    Engine::new(&config).unwrap()
}

/// Calls each of the first exported functions in an instance of its own, since a module's fuel is
/// for one.
fn run(engine: &Engine, bytes: &[u8]) -> Vec<Outcome> {
    let module = Module::new(engine, bytes).unwrap();
    let names = module.exports().filter(|e| matches!(e.ty(), ExternType::Func(_))).map(|e| e.name().to_owned());
    names.take(4).map(|name| call(engine, &module, &name)).collect()
}

fn call(engine: &Engine, module: &Module, name: &str) -> Outcome {
    let mut store = Store::new(engine, ());
    let mut outcome = Outcome { call: String::new(), globals: vec![], memory: vec![] };
    let instance = match Instance::new(&mut store, module, &[]) {
        Ok(instance) => instance,
        Err(error) => {
            return Outcome { call: describe(&error), ..outcome };
        }
    };
    let func = instance.get_func(&mut store, name).unwrap();
    let ty = func.ty(&store);
    if let Some(args) = ty.params().enumerate().map(|(i, ty)| argument(i, &ty)).collect::<Option<Vec<Val>>>() {
        let mut results = vec![Val::I32(0); ty.results().len()];
        let result = func.call(&mut store, &args, &mut results);
        outcome.call = result
            .map_or_else(|error| describe(&error), |()| format!("{:?}", results.iter().map(show).collect::<Vec<_>>()));
    }
    let exports: Vec<Extern> = instance.exports(&mut store).map(|e| e.into_extern()).collect();
    for export in &exports {
        match export {
            Extern::Global(global) => outcome.globals.push(show(&global.get(&mut store))),
            Extern::Memory(memory) => {
                outcome.memory = memory.data(&store)[..memory.data_size(&store).min(WINDOW)].to_vec()
            }
            Extern::SharedMemory(memory) => outcome.memory = copy(memory),
            _ => {}
        }
    }
    outcome
}

fn copy(memory: &SharedMemory) -> Vec<u8> {
    let cells = memory.data().iter().take(WINDOW);
    // SAFETY: no thread runs the module now.
    cells.map(|cell| unsafe { *cell.get() }).collect()
}

fn describe(error: &wasmtime::Error) -> String {
    error.downcast_ref::<Trap>().map_or_else(|| "exception".to_owned(), |trap| format!("{trap:?}"))
}

fn argument(index: usize, ty: &ValType) -> Option<Val> {
    let n = u32::try_from(index).unwrap() * 77 + 5;
    Some(match ty {
        ValType::I32 => Val::I32(n.cast_signed()),
        ValType::I64 => Val::I64(i64::from(n) << 20),
        ValType::F32 => Val::F32((n as f32).to_bits()),
        ValType::F64 => Val::F64(f64::from(n).to_bits()),
        ValType::V128 => Val::V128(u128::from(n).into()),
        ValType::Ref(ty) if ty.is_nullable() => Val::null_ref(ty.heap_type()),
        ValType::Ref(_) => return None,
    })
}

/// A value's bits; of references, whether they are null.
fn show(value: &Val) -> String {
    match value {
        Val::FuncRef(r) => format!("func {}", r.is_some()),
        Val::ExternRef(r) => format!("extern {}", r.is_some()),
        Val::AnyRef(r) => format!("any {}", r.is_some()),
        Val::ExnRef(r) => format!("exn {}", r.is_some()),
        other => format!("{other:?}"),
    }
}

/// A random module without imports that ends. `index` chooses it.
fn generate(index: u64) -> Vec<u8> {
    let mut state = index.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let bytes: Vec<u8> = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    })
    .take(3000)
    .collect();
    let config = wasm_smith::Config {
        max_imports: 0,
        export_everything: true,
        canonicalize_nans: true,
        min_memories: 1,
        max_memories: 1,
        memory64_enabled: false,
        max_memory32_bytes: 4 << 16,
        memory_max_size_required: true,
        shared_everything_threads_enabled: false,
        min_funcs: 3,
        max_funcs: 6,
        max_types: 12,
        max_globals: 8,
        max_tags: 3,
        max_elements: 8,
        max_element_segments: 4,
        max_data_segments: 6,
        max_instructions: 400,
        max_table_elements: 1000,
        table_max_size_required: true,
        allow_start_export: false,
        // Half of them trap at the first opportunity, half never.
        disallow_traps: index.is_multiple_of(2),
        ..wasm_smith::Config::default()
    };
    let mut module = wasm_smith::Module::new(config, &mut Unstructured::new(&bytes)).unwrap();
    module.ensure_termination(1000).unwrap();
    module.to_bytes()
}

/// The module with its memory and data as the linker writes them: shared, 65536 pages, passive. The
/// size is the one the pass sets, so that memory.size and memory.grow agree too.
fn as_linked(bytes: &[u8]) -> Vec<u8> {
    let text = wasmprinter::print_bytes(bytes).unwrap();
    let line = |line: &str| match line.trim_start() {
        l if l.starts_with("(memory (;") => "(memory 65536 65536 shared)".to_owned(),
        l if l.starts_with("(data (;") => format!("(data {}", &l[l.find('"').unwrap()..]),
        _ => line.to_owned(),
    };
    wat::parse_str(text.lines().map(|l| line(l) + "\n").collect::<String>()).unwrap()
}

fn returned(outcomes: &[Outcome]) -> usize {
    outcomes.iter().filter(|outcome| outcome.call.ends_with(']')).count()
}

#[test]
fn random_modules_do_the_same() {
    let engine = engine();
    let (mut watched, mut worked) = (0, 0);
    for index in 0..100 {
        let before = generate(index);
        let after = lind_passes::run(
            &before,
            &Options { memory: false, loops: true, fpcast: false, fork: lind_passes::Fork::Never },
        )
        .unwrap();
        watched += u32::from(before != after);
        let outcome = run(&engine, &before);
        worked += returned(&outcome);
        assert_eq!(outcome, run(&engine, &after), "module {index}");
    }
    // Otherwise the comparison above says little.
    assert!(worked > 30, "only {worked} calls returned");
    assert!(watched > 5, "only {watched} modules were changed");
}

#[test]
fn random_linked_modules_do_the_same() {
    let engine = engine();
    let mut worked = 0;
    for index in 1000..1030 {
        let before = as_linked(&generate(index));
        let after = lind_passes::run(&before, &Options::default()).unwrap();
        let outcome = run(&engine, &before);
        worked += returned(&outcome);
        assert_eq!(outcome, run(&engine, &after), "module {index}");
    }
    assert!(worked > 10, "only {worked} calls returned");
}
