//! Tests images of start functions, the linker's and random ones: an image must be the memory that
//! Wasmtime makes.

use std::fmt::Write;

use wasmtime::{Config, Engine, Instance, Module, Store, Val};

use super::*;

/// Pages of data.
const DATA: u64 = 48;
const HEAP_BASE: u32 = 0x10000 + 4096 * 48 - 100;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }
}

fn module(segments: &[Vec<u8>], start: &str) -> Vec<u8> {
    over(segments, start, &[])
}

/// With bytes in memory before the start function runs.
fn over(segments: &[Vec<u8>], start: &str, before: &[(Range<u64>, &[u8])]) -> Vec<u8> {
    with_heap(HEAP_BASE, segments, start, before)
}

fn with_heap(heap_base: u32, segments: &[Vec<u8>], start: &str, before: &[(Range<u64>, &[u8])]) -> Vec<u8> {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("\\{byte:02x}")).collect::<String>();
    let mut data = String::new();
    for segment in segments {
        writeln!(data, "(data \"{}\")", hex(segment)).unwrap();
    }
    for (at, bytes) in before {
        writeln!(data, "(data (i32.const {}) \"{}\")", at.start, hex(bytes)).unwrap();
    }
    let text = format!(
        "(module (import \"lind\" \"fork\" (func (result i32)))
            (memory (export \"memory\") 65536 65536)
            (global (mut i32) (i32.const 0)) (global (mut i32) (i32.const 7)) (global $tls (mut i32) (i32.const 0))
            (global (export \"__heap_base\") i32 (i32.const {heap_base}))
            (export \"first\" (global 0)) (export \"second\" (global 1)) (export \"__tls_base\" (global $tls))
            (func (export \"other\")) (func $start {start}) (start $start)
            {data})"
    );
    wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// More bytes than an image needs to be worth it, and then the start function as the linker writes
/// it: `body` is run by the first instance that finds 0 at `flag`.
fn guarded(flag: u64, done: u64, body: &str, behind: &str) -> String {
    format!(
        "block block block
            i32.const {flag} i32.const 0 i32.const 1 i32.atomic.rmw.cmpxchg
            br_table 0 1 2
          end
            i32.const 65536 i32.const 0 i32.const 40000 memory.fill
            {body}
            i32.const {flag} i32.const {done} i32.atomic.store
            i32.const {flag} i32.const -1 memory.atomic.notify drop
            br 1
          end
            i32.const {flag} i32.const 1 i64.const -1 memory.atomic.wait32 drop
        end
        {behind}"
    )
}

fn exchange(expected: u32, new: u32) -> String {
    format!("i32.const 70016 i32.const {expected} i32.const {new} i32.atomic.rmw.cmpxchg drop ")
}

/// An instance over memory that was empty.
struct Real {
    store: Store<()>,
    instance: Instance,
}

impl Real {
    fn start(engine: &Engine, wasm: &[u8]) -> Option<Real> {
        let module = Module::new(engine, wasm).unwrap();
        let mut store = Store::new(engine, ());
        let fork = wasmtime::Func::wrap(&mut store, || 0);
        let instance = Instance::new(&mut store, &module, &[fork.into()]).ok()?;
        Some(Real { store, instance })
    }

    fn data(&mut self) -> Vec<u8> {
        let memory = self.instance.get_memory(&mut self.store, "memory").unwrap();
        memory.data(&self.store)[..usize::try_from(FIRST + (DATA + 8) * PAGE).unwrap()].to_vec()
    }

    fn globals(&mut self) -> Vec<i32> {
        let names = ["first", "second", TLS_BASE];
        let value = |name| match self.instance.get_global(&mut self.store, name).unwrap().get(&mut self.store) {
            Val::I32(value) => value,
            other => panic!("{other:?}"),
        };
        names.map(value).to_vec()
    }
}

fn engine() -> Engine {
    let mut config = Config::new();
    config.wasm_threads(true);
    Engine::new(&config).unwrap()
}

/// The address range of the pages of each span.
fn parts(image: &DataImage) -> Vec<(Range<u64>, &[u8])> {
    let mut rest = &image.pages[..];
    let mut part = |span: &Span| {
        let start = u64::from(span.first) * PAGE;
        let (now, later) = rest.split_at(usize::try_from(u64::from(span.pages) * PAGE).unwrap());
        rest = later;
        (start..start + now.len() as u64, now)
    };
    let parts = image.spans.iter().map(&mut part).collect();
    assert!(rest.is_empty());
    parts
}

fn memory_of(image: &DataImage) -> Vec<u8> {
    let mut memory = vec![0; usize::try_from(FIRST + (DATA + 8) * PAGE).unwrap()];
    for (at, bytes) in parts(image) {
        assert!(at.start >= FIRST && at.end <= FIRST + DATA * PAGE);
        memory[usize::try_from(at.start).unwrap()..][..bytes.len()].copy_from_slice(bytes);
    }
    memory
}

/// Checks that an image, if there is one, is the memory that the function makes of empty memory,
/// and that over the image the function changes nothing.
fn agrees(engine: &Engine, segments: &[Vec<u8>], start: &str) -> Option<DataImage> {
    let wasm = module(segments, start);
    let image = DataImage::of(&wasm)?;
    let mut first = Real::start(engine, &wasm).expect("a module with an image does not trap");
    assert!(first.data() == memory_of(&image));
    let before = parts(&image);
    let mut second = Real::start(engine, &over(segments, start, &before)).expect("nor when it is there");
    assert!(second.data() == memory_of(&image));
    let (mut globals, first) = (second.globals(), first.globals());
    if let Some(tls_base) = image.tls_base {
        globals[2] = tls_base.get().cast_signed();
    }
    assert_eq!(globals, first);
    Some(image)
}

#[test]
fn the_linkers_function_has_an_image() {
    let segments = [vec![1; 100], vec![2; 9000], vec![3; 5]];
    let body = "i32.const 65536 global.set $tls
        i32.const 65536 i32.const 0 i32.const 100 memory.init 0
        i32.const 65648 i32.const 0 i32.const 9000 memory.init 1
        i32.const 80000 i32.const 0 i32.const 5 memory.init 2
        i32.const 80016 i32.const 0 i32.const 150000 memory.fill";
    let start = guarded(230_016, 2, body, "data.drop 1 data.drop 2");
    let initial = agrees(&engine(), &segments, &start).unwrap();
    assert_eq!(initial.tls_base.unwrap().get(), 65536);
    assert_eq!(initial.spans, [Span { first: 16, pages: 4 }, Span { first: 56, pages: 1 }]);
    let bytes = initial.to_bytes();
    let words = [65536, 2, 16, 4, 56, 1].map(u32::to_le_bytes).concat();
    assert!(bytes[..24] == words && bytes[24..] == initial.pages);
}

#[test]
fn the_section_is_written_once_and_again() {
    let start = guarded(80_000, 2, "i32.const 70000 i32.const 0 i32.const 5000 memory.init 0", "");
    let wasm = module(&[vec![1; 5000]], &start);
    let attached = |wasm: &[u8]| {
        let mut module = crate::module::Module::parse(wasm).unwrap();
        attach(&mut module).unwrap();
        assert_eq!(module.custom(SECTION).unwrap(), DataImage::of(wasm).unwrap().to_bytes());
        module.finish().unwrap()
    };
    let once = attached(&wasm);
    assert!(once.starts_with(&wasm) && attached(&once) == once);
}

#[test]
fn what_must_run_has_no_image() {
    let segments = [vec![1; 5000], vec![2; 10]];
    let init = "i32.const 70000 i32.const 0 i32.const 10 memory.init 1";
    let engine = engine();
    for (what, start) in [
        ("memory that each run changes", guarded(80_000, 2, init, &(exchange(6, 7) + &exchange(0, 6)))),
        ("too little", format!("i32.const 65536 i32.const 0 i32.const 32700 memory.fill {init}")),
        ("a flag that says wait", guarded(80_000, 1, init, "")),
        ("a segment that is dropped the first time only", guarded(80_000, 2, &format!("{init} data.drop 0"), "")),
        ("another global", guarded(80_000, 2, &format!("{init} i32.const 3 global.set 0"), "")),
        ("thread-local storage at 0", guarded(80_000, 2, &format!("{init} i32.const 0 global.set $tls"), "")),
        (
            "a segment that is too short",
            guarded(80_000, 2, "i32.const 70000 i32.const 1 i32.const 10 memory.init 1", ""),
        ),
        ("a segment that is dropped", guarded(80_000, 2, &format!("data.drop 1 {init}"), "")),
        ("a length that wraps", guarded(80_000, 2, "i32.const 70000 i32.const -1 i32.const 2 memory.init 1", "")),
        ("below the data", guarded(80_000, 2, "i32.const 65535 i32.const 0 i32.const 10 memory.init 1", "")),
        ("behind the data", guarded(80_000, 2, "i32.const 262140 i32.const 0 i32.const 10 memory.init 1", "")),
        ("all of memory", guarded(80_000, 2, "i32.const 65536 i32.const 0 i32.const -65536 memory.fill", "")),
        (
            "zeroes where nothing is mapped",
            guarded(80_000, 2, "i32.const 0x10000000 i32.const 0 i32.const 1 memory.fill", ""),
        ),
        ("a flag where nothing is mapped", guarded(60_000, 2, init, "")),
        ("a flag at an odd address", guarded(80_001, 2, init, "")),
        ("a call", guarded(80_000, 2, &format!("{init} call 1"), "")),
        ("a loop", guarded(80_000, 2, &format!("{init} loop end"), "")),
        ("a store of another kind", guarded(80_000, 2, "i32.const 70000 i32.const 1 i32.store", "")),
        ("a trap", format!("{} unreachable", guarded(80_000, 2, init, ""))),
        ("nothing", String::new()),
        ("too many spans", guarded(80_000, 2, &"i32.const 65536 i32.const 1 i32.const 1 memory.fill ".repeat(300), "")),
    ] {
        assert!(agrees(&engine, &segments, &start).is_none(), "{what}");
    }
    assert!(DataImage::of(b"").is_none());
    let good = module(&segments, &guarded(80_000, 2, init, ""));
    assert!(DataImage::of(&good).is_some());
    for end in 0..good.len() - 1 {
        DataImage::of(&good[..end]);
    }
    let sparse: String = (0..40)
        .map(|n| format!("i32.const {} i32.const 0 i32.const 1 memory.init 1 ", 65536 + n * 18 * 4096))
        .collect();
    let sparse = with_heap(0x0100_0000, &segments, &guarded(80_000, 2, &sparse, ""), &[]);
    assert!(DataImage::of(&sparse).is_none(), "too many spans");
}

#[test]
fn random_functions_agree_with_wasmtime() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let seed = u64::from(now.subsec_nanos()) << 20 | 1;
    println!("seed {seed}");
    let (mut random, engine, mut images) = (Random(seed), engine(), 0);
    for _ in 0..300 {
        let segments: Vec<Vec<u8>> = (0..4)
            .map(|n| {
                let len = [0, random.below(30), random.below(5000), random.below(20_000)][n];
                (0..len).map(|_| u8::try_from(random.below(3)).unwrap()).collect()
            })
            .collect();
        let mut body = String::new();
        for _ in 0..random.below(8) {
            operation(&mut random, &segments, &mut body);
        }
        let flag = FIRST + 4 * random.below(DATA * 1024);
        let done = if random.one_in(12) { random.below(4) } else { 2 };
        let behind = ["", "data.drop 1 ", "data.drop 1 data.drop 3 "][usize::try_from(random.below(3)).unwrap()];
        let start = if random.one_in(12) { body } else { guarded(flag, done, &body, behind) };
        images += u32::from(agrees(&engine, &segments, &start).is_some());
    }
    assert!(images > 60, "only {images} have one");
}

fn operation(random: &mut Random, segments: &[Vec<u8>], out: &mut String) {
    let index = usize::try_from(random.below(4)).unwrap();
    let segment = segments[index].len() as u64;
    // Seldom longer than the data, and seldom outside.
    let stretch = u64::from(random.one_in(20));
    let from = random.below(segment + 1);
    let len = random.below(segment - from + 1) + stretch;
    let to = |random: &mut Random, len: u64| {
        let room = (DATA * PAGE).saturating_sub(len);
        if random.one_in(40) { random.below(1 << 18) } else { FIRST + random.below(room + 1) }
    };
    match random.below(10) {
        0..=4 => write!(out, "i32.const {} i32.const {from} i32.const {len} memory.init {index} ", to(random, len),),
        5 | 6 => {
            let len = random.below(9000);
            let byte = random.below(2) * 0x1_07;
            write!(out, "i32.const {} i32.const {byte} i32.const {len} memory.fill ", to(random, len))
        }
        7 => write!(out, "i32.const {} i32.const -2 i32.atomic.store offset=8 ", to(random, 12) & !3),
        8 => write!(out, "i32.const {} global.set {} ", random.below(3), random.below(20).min(2)),
        _ => {
            write!(out, "block i32.const {} br_if 0 i32.const 65540 i32.const 9 i32.atomic.store end ", random.below(2))
        }
    }
    .unwrap();
}
