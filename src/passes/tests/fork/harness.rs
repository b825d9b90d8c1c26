//! The engine's part of the contract in `docs/fork.md`, without processes.

use lind_passes::{Fork, Options};
use wasmtime::{Caller, Config, Engine, Extern, Global, Instance, Linker, Memory, Module, OptLevel, Store, Trap, Val};

pub const ONLY: Options = Options { memory: false, loops: false, fpcast: false, fork: Fork::Auto };

const UNWIND: i32 = i32::MIN;
/// In `__lind_fork_pinned`: a new instance would have other tables.
const CHANGED: i32 = i32::MIN;

/// Programs that fork more often are ended.
const MOST: u32 = 200;

/// When the host really forks, of the calls of `lind.fork` counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Never,
    At(u32),
    /// At each call.
    Always,
    /// At each call whose number and this have an odd number of ones in common.
    Mask(u32),
}

impl When {
    fn includes(self, call: u32) -> bool {
        match self {
            When::Never => false,
            When::At(at) => call == at,
            When::Always => true,
            When::Mask(mask) => (call & mask).count_ones() % 2 == 1,
        }
    }
}

/// Where the program goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    /// In the instance that it was in, as the parent.
    Same,
    /// In a new one, as the child.
    New,
}

/// The effects of a run: results or trap, the log, globals, memory.
#[derive(PartialEq, Debug)]
pub struct Outcome {
    pub end: String,
    pub calls: u32,
    pub globals: Vec<(String, String)>,
    pub memory: Vec<u8>,
}

/// How often it forked, and how often that was refused because a frame could not be left.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Forks {
    pub done: u32,
    pub refused: u32,
}

#[derive(Clone)]
enum State {
    Idle,
    /// The final result of `lind.fork`, and the memory as it was.
    Unwinding(i32, Vec<u8>),
    Resuming(i32, Vec<u8>, usize),
}

struct Host {
    when: When,
    calls: u32,
    state: State,
    forks: Forks,
}

pub fn engine() -> Engine {
    let mut config = Config::new();
    config
        .wasm_exceptions(true)
        .wasm_gc(true)
        .wasm_function_references(true)
        .relaxed_simd_deterministic(true)
        .wasm_branch_hinting(true)
        // Most of the time of the tests is the compiler's.
        .cranelift_opt_level(OptLevel::None)
        .max_wasm_stack(1 << 20);
    Engine::new(&config).unwrap()
}

/// `lind.fork`. Its final result in the program is the number of the call.
fn fork(mut caller: Caller<'_, Host>) -> Result<i32, wasmtime::Error> {
    let host = caller.data_mut();
    match std::mem::replace(&mut host.state, State::Idle) {
        State::Unwinding(..) => panic!("lind.fork is called while the stack is left"),
        State::Resuming(value, memory, lowest) => {
            // The bytes that the records have overwritten.
            exported(&mut caller).data_mut(&mut caller)[lowest..].copy_from_slice(&memory[lowest..]);
            let top = global(&mut caller, "__lind_fork_top").get(&mut caller).unwrap_i32();
            assert_eq!(usize::try_from(top).unwrap(), memory.len(), "records are left");
            Ok(value)
        }
        State::Idle => {
            host.calls += 1;
            if host.calls > MOST {
                return Err(wasmtime::Error::msg("enough"));
            }
            let value = host.calls.cast_signed();
            if !host.when.includes(host.calls) {
                return Ok(value);
            }
            if global(&mut caller, "__lind_fork_pinned").get(&mut caller).unwrap_i32() & !CHANGED != 0 {
                caller.data_mut().forks.refused += 1;
                return Ok(value);
            }
            let memory = exported(&mut caller).data(&caller).to_vec();
            let top = i32::try_from(memory.len()).unwrap();
            global(&mut caller, "__lind_fork_top").set(&mut caller, Val::I32(top)).unwrap();
            caller.data_mut().forks.done += 1;
            caller.data_mut().state = State::Unwinding(value, memory);
            Ok(UNWIND)
        }
    }
}

fn exported(caller: &mut Caller<'_, Host>) -> Memory {
    caller.get_export("memory").and_then(Extern::into_memory).unwrap()
}

fn global(caller: &mut Caller<'_, Host>, name: &str) -> Global {
    caller.get_export(name).and_then(Extern::into_global).unwrap_or_else(|| panic!("no {name}"))
}

struct Run<'m> {
    engine: &'m Engine,
    module: &'m Module,
    store: Store<Host>,
    instance: Instance,
}

impl<'m> Run<'m> {
    fn new(engine: &'m Engine, module: &'m Module, host: Host) -> Result<Self, wasmtime::Error> {
        let mut linker = Linker::new(engine);
        linker.func_wrap("lind", "fork", fork).unwrap();
        linker.func_wrap("env", "other", || 7i32).unwrap();
        let mut store = Store::new(engine, host);
        let instance = linker.instantiate(&mut store, module)?;
        Ok(Run { engine, module, store, instance })
    }

    fn memory(&mut self) -> Memory {
        self.instance.get_memory(&mut self.store, "memory").unwrap()
    }

    fn global(&mut self, name: &str) -> Global {
        self.instance.get_global(&mut self.store, name).unwrap()
    }

    /// Calls an entry, and carries out the forks.
    fn call(mut self, entry: &str, args: &[Val], place: Where) -> (Self, Result<Vec<Val>, wasmtime::Error>) {
        let func = self.instance.get_func(&mut self.store, entry).unwrap();
        let mut results = vec![Val::I32(0); func.ty(&self.store).results().len()];
        let mut end = func.call(&mut self.store, args, &mut results);
        while let State::Unwinding(value, memory) = self.store.data().state.clone() {
            if let Err(error) = end {
                panic!("the exception reaches the host: {error:?}");
            }
            results.clear();
            let lowest = self.global("__lind_fork_top").get(&mut self.store).unwrap_i32();
            self.store.data_mut().state = State::Resuming(value, memory, usize::try_from(lowest).unwrap());
            if place == Where::New {
                self = self.child();
            }
            let resume = self.instance.get_typed_func::<(), ()>(&mut self.store, "__lind_resume").unwrap();
            end = resume.call(&mut self.store, ());
        }
        (self, end.map(|()| results))
    }

    /// A new instance with a copy of memory and globals.
    fn child(mut self) -> Self {
        let data = self.store.data();
        let host = Host { when: data.when, calls: data.calls, state: data.state.clone(), forks: data.forks };
        let mut child = Run::new(self.engine, self.module, host).unwrap();
        let memory = self.memory().data(&self.store).to_vec();
        let missing = (memory.len() - child.memory().data_size(&child.store)) as u64 / 65536;
        let of_child = child.memory();
        of_child.grow(&mut child.store, missing).unwrap();
        of_child.data_mut(&mut child.store).copy_from_slice(&memory);
        let own = |name: &str| name.starts_with("__lind_fork_") || name.starts_with("__lind_global_");
        let names: Vec<String> = self.module.exports().map(|e| e.name().to_owned()).filter(|name| own(name)).collect();
        for name in names {
            let value = self.global(&name).get(&mut self.store);
            child.global(&name).set(&mut child.store, value).unwrap();
        }
        child
    }
}

/// Runs an entry and says what became of it. A program that was not transformed must never fork.
pub fn run(engine: &Engine, module: &Module, entry: &str, when: When, place: Where) -> (Outcome, Forks) {
    let host = Host { when, calls: 0, state: State::Idle, forks: Forks::default() };
    let run = match Run::new(engine, module, host) {
        Ok(run) => run,
        Err(error) => {
            let outcome = Outcome { end: describe(&error), calls: 0, globals: vec![], memory: vec![] };
            return (outcome, Forks::default());
        }
    };
    let (mut run, end) = run.call(entry, &[], place);
    let end = end.map_or_else(|error| describe(&error), |_| "returned".to_owned());
    let exports: Vec<(String, Extern)> =
        run.instance.exports(&mut run.store).map(|e| (e.name().to_owned(), e.into_extern())).collect();
    let mut globals = Vec::new();
    for (name, export) in exports {
        if let (false, Extern::Global(global)) = (name.starts_with("__lind"), export) {
            globals.push((name, show(&global.get(&mut run.store))));
        }
    }
    let memory = run.memory().data(&run.store).to_vec();
    let host = run.store.data();
    (Outcome { end, calls: host.calls, globals, memory }, host.forks)
}

fn describe(error: &wasmtime::Error) -> String {
    error.downcast_ref::<Trap>().map_or_else(|| "exception".to_owned(), |trap| format!("{trap:?}"))
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

/// Compiles a module as it is, and as the pass makes it.
pub fn both(engine: &Engine, bytes: &[u8], options: &Options) -> (Module, Module) {
    let changed = lind_passes::run(bytes, options).unwrap();
    assert_eq!(lind_passes::run(&changed, options).unwrap(), changed, "a second time changes nothing");
    (Module::new(engine, bytes).unwrap(), Module::new(engine, changed).unwrap())
}

/// Checks that an entry does the same whenever it forks. Returns the forks when it forks at each
/// call.
pub fn check(engine: &Engine, (plain, changed): &(Module, Module), entry: &str, places: &[Where]) -> Forks {
    const FEW: u32 = 40;
    let expected = run(engine, plain, entry, When::Never, Where::Same).0;
    let mut all = Forks::default();
    let each = (1..=expected.calls.min(FEW)).map(When::At);
    for when in each.chain([When::Never, When::Mask(1), When::Mask(2), When::Mask(5), When::Always]) {
        for place in places {
            let (outcome, forks) = run(engine, changed, entry, when, *place);
            assert_same(&outcome, &expected, &format!("{entry} forks {when:?} and goes on in {place:?}"));
            if when == When::Always {
                assert_eq!(forks.done + forks.refused, expected.calls);
                all = forks;
            }
        }
    }
    all
}

/// Compares, without printing memories.
pub fn assert_same(outcome: &Outcome, expected: &Outcome, what: &str) {
    assert_eq!((&outcome.end, outcome.calls), (&expected.end, expected.calls), "{what}");
    assert_eq!(outcome.globals, expected.globals, "{what}");
    let differs = outcome.memory.iter().zip(&expected.memory).position(|(a, b)| a != b);
    assert_eq!((outcome.memory.len(), differs), (expected.memory.len(), None), "{what}: the memory");
}
