//! Debugging information says the same of an instruction before and after it moved. Needs clang and
//! wasm-ld of LLVM 22, as building programs does.

use std::path::Path;
use std::process::Command;

use addr2line::Context;
use gimli::{EndianSlice, LittleEndian};
use lind_passes::Options;
use wasmparser::{Operator, Parser, Payload};

const SOURCE: &str = r#"
volatile int flag, other;
int data[64];
static inline int twice(int x) { return data[x & 63] * 2; }
__attribute__((noinline)) int first(int x) { while (!flag) ; return twice(x) + 1; }
__attribute__((noinline)) int plain(int x) {
    int sum = 0;
    for (int i = 0; i < x; i++)
        sum += twice(i) ^ x;
    return sum;
}
__attribute__((noinline)) int both(int *p, int n) {
    int seen = 0;
    while (!other && n--) seen += n;
    { int inner = n * 3; data[inner & 63] = seen; }
    while (flag) {
        int local = n;
        while (!other) ;
        data[local & 63]++;
    }
    return seen + *p;
}
__attribute__((noinline)) int last(int x) { return plain(x) + first(x); }
int entry(int x) { return last(x) + both(data, x) + plain(x); }
"#;

type Slice<'a> = EndianSlice<'a, LittleEndian>;

fn build(dir: &Path, source: &str, flags: &[&str]) -> Vec<u8> {
    let run = |program: &str, args: &[&str]| {
        let status = Command::new(program).args(args).current_dir(dir).status();
        assert!(status.unwrap_or_else(|error| panic!("{program}: {error}")).success(), "{program} {args:?}");
    };
    std::fs::write(dir.join("t.c"), source).unwrap();
    let target = ["--target=wasm32-unknown-unknown", "-matomics", "-mbulk-memory", "-w", "-c", "t.c", "-o", "t.o"];
    run("clang-22", &[&target[..], flags].concat());
    run(
        "wasm-ld-22",
        &[
            "--shared-memory",
            "--max-memory=4294967296",
            "--global-base=65536",
            "--no-entry",
            "--emit-relocs",
            "--export=entry",
            "t.o",
            "-o",
            "t.wasm",
        ],
    );
    std::fs::read(dir.join("t.wasm")).unwrap()
}

/// The instructions of a module with their places in the code section, without the barriers.
fn instructions(bytes: &[u8]) -> Vec<(u64, String)> {
    let (mut found, mut base) = (Vec::new(), 0);
    for payload in Parser::new(0).parse_all(bytes) {
        match payload.unwrap() {
            Payload::CodeSectionStart { range, .. } => base = range.start,
            Payload::CodeSectionEntry(body) => {
                for op in body.get_operators_reader().unwrap().into_iter_with_offsets() {
                    let (op, at) = op.unwrap();
                    if let Operator::Drop = op
                        && found.last().is_some_and(|(_, last): &(u64, String)| last.contains("I32AtomicLoad"))
                    {
                        found.truncate(found.len() - 2);
                        continue;
                    }
                    found.push(((at - base) as u64, format!("{op:?}")));
                }
            }
            _ => {}
        }
    }
    found
}

fn dwarf(bytes: &[u8]) -> gimli::Dwarf<Slice<'_>> {
    let custom = |name: &str| {
        Parser::new(0).parse_all(bytes).find_map(|payload| match payload.unwrap() {
            Payload::CustomSection(section) if section.name() == name => Some(section.data()),
            _ => None,
        })
    };
    gimli::Dwarf::load(|id| Ok::<_, ()>(EndianSlice::new(custom(id.name()).unwrap_or(&[]), LittleEndian))).unwrap()
}

/// The functions, inlined ones included, and lines that an address belongs to.
fn frames(context: &Context<Slice>, address: u64) -> Vec<String> {
    let mut frames = context.find_frames(address).skip_all_loads().unwrap();
    let mut found = Vec::new();
    while let Some(frame) = frames.next().unwrap() {
        let name = frame.function.map(|function| function.raw_name().unwrap().into_owned());
        let place = frame.location.map(|place| (place.line, place.column));
        found.push(format!("{name:?} {place:?}"));
    }
    found
}

/// The ranges over which variables have a place, with the place.
fn places(dwarf: &gimli::Dwarf<Slice>) -> Vec<(u64, u64, String)> {
    let mut found = Vec::new();
    let mut units = dwarf.units();
    while let Some(header) = units.next().unwrap() {
        let unit = dwarf.unit(header).unwrap();
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs().unwrap() {
            let Some(value) = entry.attr_value(gimli::DW_AT_location) else {
                continue;
            };
            let Some(mut list) = dwarf.attr_locations(&unit, value).unwrap() else {
                continue;
            };
            while let Some(item) = list.next().unwrap() {
                found.push((item.range.begin, item.range.end, format!("{:?}", item.data)));
            }
        }
    }
    found
}

fn check(flags: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let before = build(dir.path(), SOURCE, flags);
    let after = lind_passes::run(&before, &Options::default()).unwrap();
    let (old, new) = (instructions(&before), instructions(&after));
    assert_eq!(old.iter().map(|(_, op)| op).collect::<Vec<_>>(), new.iter().map(|(_, op)| op).collect::<Vec<_>>());
    assert!(new.last().unwrap().0 >= old.last().unwrap().0 + 9, "{flags:?}: no loop is watched");

    let (old_dwarf, new_dwarf) = (dwarf(&before), dwarf(&after));
    let (old_places, new_places) = (places(&old_dwarf), places(&new_dwarf));
    let (was, is) = (Context::from_dwarf(old_dwarf).unwrap(), Context::from_dwarf(new_dwarf).unwrap());
    let mut known = 0;
    for ((old, op), (new, _)) in old.iter().zip(&new) {
        let frames_were = frames(&was, *old);
        assert_eq!(frames_were, frames(&is, *new), "{flags:?}: {op} was at {old:#x}, is at {new:#x}");
        known += usize::from(frames_were.iter().any(|frame| !frame.contains("None")));
    }
    assert!(known * 10 > old.len() * 4, "{flags:?}: only {known} of {} instructions have a line", old.len());

    // A variable's place holds for the same instructions as before.
    assert!(old_places.len() > 5 || flags.contains(&"-O0"), "{flags:?}: only {} places", old_places.len());
    assert_eq!(old_places.len(), new_places.len());
    for (was, is) in old_places.iter().zip(&new_places) {
        assert_eq!(was.2, is.2);
        for ((old, op), (new, _)) in old.iter().zip(&new) {
            let (held, holds) = ((was.0..was.1).contains(old), (is.0..is.1).contains(new));
            assert_eq!(held, holds, "{flags:?}: {was:x?} {is:x?} {op} {old:#x} {new:#x}");
        }
    }
}

/// `calls` has more than 127 bytes before the pass, so that its length in a list of version 5 may
/// grow (`docs/passes.md`).
const FORKS: &str = r#"
__attribute__((import_module("lind"), import_name("fork"))) int ask(void);
int data[64];
static inline int twice(int x) { return data[x & 63] * 2; }
__attribute__((noinline)) int waits(int x, int *p) {
    int kept = twice(x), sum = 0;
    for (int i = 0; i < x; i++) {
        sum += ask() * twice(i) + (kept ^= i);
        if (sum & 1)
            *p += ask() + kept;
    }
    return sum + kept;
}
__attribute__((noinline)) int plain(int x) { return twice(x) + 1; }
__attribute__((noinline)) int calls(int x) {
    int more = data[x & 3] * 5 + data[x & 7] * 7 + data[x & 15] * 11 + data[x & 31] * 13;
    return waits(x, data) * 3 + plain(x) + waits(x + 1, data + 1) + more;
}
int entry(int x) { return calls(x) + plain(x); }
"#;

/// The code that is added for fork has none of these. Its stores count as unaligned.
fn is_the_programs(op: &str) -> bool {
    !op.contains(" align: 0")
        && ["I32Load", "I32Store", "I32Add", "I32Mul", "I32Xor", "I32Shl", "Loop"]
            .iter()
            .any(|name| op.starts_with(name))
}

#[test]
fn functions_that_fork() {
    for flags in [["-O2", "-g", "-gdwarf-4"], ["-O2", "-g", "-gdwarf-5"], ["-O0", "-g", "-gdwarf-4"]] {
        let dir = tempfile::tempdir().unwrap();
        let before = build(dir.path(), FORKS, &flags);
        let after = lind_passes::run(&before, &Options::default()).unwrap();
        let of = |bytes| {
            let mut found = instructions(bytes);
            found.retain(|(_, op)| is_the_programs(op));
            found
        };
        // The new functions come last.
        let (old, new) = (of(&before), of(&after));
        assert!(new.len() > old.len() + 10);
        let (was, is) = (Context::from_dwarf(dwarf(&before)).unwrap(), Context::from_dwarf(dwarf(&after)).unwrap());
        let (mut known, mut moved) = (0, 0);
        for ((old, op), (new, same)) in old.iter().zip(&new) {
            assert_eq!(op, same);
            let frames_were = frames(&was, *old);
            assert_eq!(frames_were, frames(&is, *new), "{flags:?}: {op} was at {old:#x}, is at {new:#x}");
            known += usize::from(frames_were.iter().any(|frame| !frame.contains("None")));
            moved = new - old;
        }
        assert!(known > 10 && moved > 30, "{flags:?}: {known} {moved}");
    }
}

#[test]
fn version_4() {
    check(&["-O2", "-g", "-gdwarf-4"]);
    check(&["-O0", "-g", "-gdwarf-4"]);
}

#[test]
fn version_5() {
    check(&["-O2", "-g", "-gdwarf-5"]);
    check(&["-O0", "-g", "-gdwarf-5"]);
}

#[test]
fn with_ranges_and_every_section() {
    check(&["-O1", "-g3", "-gdwarf-4", "-gdwarf-aranges", "-ffunction-sections"]);
    check(&["-Os", "-g3", "-gdwarf-5", "-ffunction-sections"]);
}

/// Bytes in a DWARF section that are not DWARF do no harm.
#[test]
fn nonsense_is_left_as_it_is() {
    let loops = r#"(memory 1) (func (loop $l (br_if $l (i32.load (i32.const 8)))))"#;
    for (name, data) in [
        (".debug_info", "\\ff\\ff\\ff\\ff"),
        (".debug_info", "\\20\\00\\00\\00\\04\\00"),
        (".debug_line", "\\ff\\ff\\00\\00"),
    ] {
        let wat = format!(r#"(module (@custom ".debug_info" "") (@custom "{name}" "{data}") {loops})"#)
            .replace(r#"(@custom ".debug_info" "") (@custom ".debug_info""#, r#"(@custom ".debug_info""#);
        let out = lind_passes::run(
            &wat::parse_str(&wat).unwrap(),
            &Options { memory: false, loops: true, fpcast: false, fork: lind_passes::Fork::Never },
        )
        .unwrap();
        assert!(wasmprinter::print_bytes(&out).unwrap().contains("i32.atomic.load"));
    }
}

/// Any bytes may stand in a custom section.
#[test]
fn damaged_sections_do_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = 1u64;
    let mut random = |n: usize| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        usize::try_from(state >> 33).unwrap() % n
    };
    for version in ["-gdwarf-4", "-gdwarf-5"] {
        let good = build(dir.path(), SOURCE, &["-O2", "-g3", version, "-gdwarf-aranges"]);
        let code_end = Parser::new(0).parse_all(&good).find_map(|payload| match payload.unwrap() {
            Payload::CodeSectionStart { range, .. } => Some(range.end),
            _ => None,
        });
        let custom = code_end.unwrap();
        for _ in 0..3000 {
            let mut bad = good.clone();
            for _ in 0..=random(4) {
                let at = custom + random(good.len() - custom);
                bad[at] = [0, 0xff, 0x7f, 0x80, 1][random(5)] ^ u8::try_from(random(2)).unwrap();
            }
            let options = Options { fpcast: true, ..Options::default() };
            // A section's length may be hit, and then it is not a module.
            let _ = lind_passes::run(&bad, &options);
        }
    }
}
