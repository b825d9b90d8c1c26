//! Folders import downwards, in the engine and in the kernel.
//!
//! The engine: `code` imports nothing, `space` only `code`. The folders above hang together by
//! Guest and HostThread, which each of them needs.
//!
//! The kernel: `LAYERS`, from the bottom. `BODY` is a circle: a cage has descriptors, and /proc
//! shows files and cages; the receiver of SIGIO is a cage, and a terminal has a foreground cage;
//! and all of them get the call that they are part of (`Ctx`).

use std::fs;
use std::path::{Path, PathBuf};

/// Folders of the engine, and which others each may import from.
const ENGINE: [(&str, &[&str]); 2] = [("code", &[]), ("space", &["code"])];

/// Modules of the kernel: each may import from those in its own row and in rows before it.
const LAYERS: [&[&str]; 6] = [
    &["lock", "sealed", "text"],
    &["host", "mem"],
    &["threei", "event", "stdio"],
    &BODY,
    &["copy_out", "denial"],
    &["sys"],
];
const BODY: [&str; 16] = [
    "async_io",
    "authority",
    "cage",
    "call",
    "fd",
    "fd_routes",
    "ipc",
    "path",
    "procfs",
    "root",
    "runtime",
    "set_id",
    "spin",
    "terminal",
    "timers",
    "writing",
];

/// Imports against the order: from, to, why.
const UPWARDS: [(&str, &str, &str); 2] = [
    ("call", "sys", "the table of system calls names the functions"),
    ("host", "fd", "unsafe code is host's alone, and InUse is what makes it sound there"),
];

/// The sources of a folder or a file; tests of the same name aside.
fn sources(place: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(place) else {
        return place.exists().then(|| place.to_owned()).into_iter().collect();
    };
    let is_test = |path: &Path| path.file_stem().is_some_and(|stem| stem == "tests");
    let paths = entries.map(|entry| entry.unwrap().path()).filter(|path| !is_test(path));
    paths.flat_map(|path| sources(&path)).collect()
}

/// The modules that a source names behind `crate::`, one or several in braces. Comments and the
/// tests at its end do not count.
fn named(text: &str) -> Vec<String> {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap();
    let code: String =
        text.lines().filter(|line| !line.trim_start().starts_with("//")).map(|line| format!("{line}\n")).collect();
    let word = |text: &str| text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap().to_owned();
    code.split("crate::")
        .skip(1)
        .flat_map(|after| match after.strip_prefix('{') {
            None => vec![word(after)],
            Some(list) => outermost(list).iter().map(|item| word(item.trim())).collect(),
        })
        .filter(|name| name.starts_with(char::is_lowercase))
        .collect()
}

/// Splits a list at its outermost commas, up to the closing brace.
fn outermost(list: &str) -> Vec<String> {
    let (mut depth, mut items) = (0, vec![String::new()]);
    for c in list.chars() {
        match c {
            '}' if depth == 0 => break,
            ',' if depth == 0 => items.push(String::new()),
            _ => items.last_mut().unwrap().push(c),
        }
        depth += i32::from(c == '{') - i32::from(c == '}');
    }
    items
}

/// The imports of a module that `may` does not allow.
fn wrong(top: &Path, module: &str, may: impl Fn(&str) -> bool) -> Vec<String> {
    let files = [sources(&top.join(module)), sources(&top.join(format!("{module}.rs")))].concat();
    assert!(!files.is_empty(), "{module} has moved");
    let imports = |file: &PathBuf| {
        let names = named(&fs::read_to_string(file).unwrap());
        let wrong = names.into_iter().filter(|name| name != module && !may(name));
        wrong.map(|name| format!("{}: crate::{name}\n", file.display())).collect::<Vec<_>>()
    };
    files.iter().flat_map(imports).collect()
}

#[test]
fn folders_import_downwards() {
    let engine = Path::new(env!("CARGO_MANIFEST_DIR"));
    let wrong: String =
        ENGINE.iter().flat_map(|(folder, allowed)| wrong(engine, folder, |name| allowed.contains(&name))).collect();
    assert!(wrong.is_empty(), "imports against the order of src/engine/lib.rs:\n{wrong}");
}

#[test]
fn the_kernel_imports_downwards() {
    let kernel = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernel");
    let crate_root = fs::read_to_string(kernel.join("lib.rs")).unwrap();
    let modules =
        crate_root.lines().filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';'));
    let unplaced: Vec<_> = modules.filter(|module| *module != "testing" && !LAYERS.concat().contains(module)).collect();
    assert!(unplaced.is_empty(), "in no layer: {unplaced:?}");
    let mut against = String::new();
    let mut upwards = UPWARDS.to_vec();
    for (at, layer) in LAYERS.iter().enumerate() {
        for module in *layer {
            let below = |name: &str| LAYERS[..=at].concat().contains(&name);
            for import in wrong(&kernel, module, below) {
                let to = import.trim().rsplit("::").next().unwrap();
                match UPWARDS.iter().any(|&(from, allowed, _)| (from, allowed) == (module, to)) {
                    true => upwards.retain(|&(from, allowed, _)| (from, allowed) != (module, to)),
                    false => against.push_str(&import),
                }
            }
        }
    }
    assert!(against.is_empty(), "imports against the order in src/engine/tests/layers.rs:\n{against}");
    assert!(upwards.is_empty(), "nothing imports so any more: {upwards:?}");
}

#[test]
fn imports_are_found() {
    let text = "//! crate::a\nuse crate::b::C;\nuse crate::{d, e::{f, g}, H};\nfn i() { crate::j::k() }\n#[cfg(test)]\nmod tests { use crate::l; }";
    assert_eq!(named(text), ["b", "d", "e", "j"]);
}
