//! Folders import downwards, in the engine, in the kernel, and in lind-boot.
//!
//! The engine: `code` imports nothing, and its files do not import each other in a circle; `space`
//! imports only `code`. The folders above hang together by Guest and HostThread, which each of them
//! needs.
//!
//! The kernel: `LAYERS`, from the bottom. `BODY` is a circle: a cage has descriptors, and /proc
//! shows files and cages; the receiver of SIGIO is a cage, and a terminal has a foreground cage;
//! and all of them get the call that they are part of (`Ctx`).
//!
//! lind-boot: `LIND_BOOT`, from the bottom. The structs of the command line know nothing but
//! amounts.

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
    &["copy_out", "denial", "rules"],
    &["sys"],
];
const BODY: [&str; 18] = [
    "async_io",
    "authority",
    "cage",
    "call",
    "course",
    "fd",
    "fd_routes",
    "ipc",
    "landlock",
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

/// Modules of lind-boot: each may import from those in its own row and in rows before it. `reserve`
/// is the allocator of the program, for `main` alone.
const LIND_BOOT: [&[&str]; 10] = [
    &["amount"],
    &["cli"],
    &["config", "failure", "files", "installed", "named", "private"],
    &["plan"],
    &["walls"],
    &["launch"],
    &["sandbox"],
    &["session", "overlay"],
    &["tools"],
    &["reserve"],
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
    named_behind("crate::", text)
}

/// The names in lower case that a source has behind a prefix.
fn named_behind(prefix: &str, text: &str) -> Vec<String> {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap();
    let code: String =
        text.lines().filter(|line| !line.trim_start().starts_with("//")).map(|line| format!("{line}\n")).collect();
    let word = |text: &str| text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap().to_owned();
    code.split(prefix)
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

/// The modules that a crate root declares.
fn modules(crate_root: &Path) -> Vec<String> {
    let text = fs::read_to_string(crate_root).unwrap();
    let modules =
        text.lines().filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';'));
    modules.filter(|module| *module != "testing").map(str::to_owned).collect()
}

/// The imports against the order of the layers, but for those in `upwards`.
fn against(top: &Path, crate_root: &str, layers: &[&[&str]], upwards: &[(&str, &str, &str)]) -> String {
    let mut unplaced = modules(&top.join(crate_root));
    unplaced.retain(|module| !layers.concat().contains(&module.as_str()));
    assert!(unplaced.is_empty(), "in no layer: {unplaced:?}");
    let mut against = String::new();
    let mut left = upwards.to_vec();
    for (at, layer) in layers.iter().enumerate() {
        for module in *layer {
            let below = |name: &str| layers[..=at].concat().contains(&name);
            for import in wrong(top, module, below) {
                let to = import.trim().rsplit("::").next().unwrap();
                match upwards.iter().any(|&(from, allowed, _)| (from, allowed) == (module, to)) {
                    true => left.retain(|&(from, allowed, _)| (from, allowed) != (module, to)),
                    false => against.push_str(&import),
                }
            }
        }
    }
    assert!(left.is_empty(), "nothing imports so any more: {left:?}");
    against
}

#[test]
fn the_kernel_imports_downwards() {
    let kernel = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kernel");
    let against = against(&kernel, "lib.rs", &LAYERS, &UPWARDS);
    assert!(against.is_empty(), "imports against the order in src/engine/tests/layers.rs:\n{against}");
}

#[test]
fn lind_boot_imports_downwards() {
    let lind_boot = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../lind-boot/src");
    let against = against(&lind_boot, "main.rs", &LIND_BOOT, &[]);
    assert!(against.is_empty(), "imports against the order in src/engine/tests/layers.rs:\n{against}");
}

/// The modules that are left when those are removed, again and again, that import none of the rest.
fn in_circles(mut imports: Vec<(String, Vec<String>)>) -> Vec<(String, Vec<String>)> {
    loop {
        let left: Vec<String> = imports.iter().map(|(module, _)| module.clone()).collect();
        let before = imports.len();
        for (module, names) in &mut imports {
            names.retain(|name| name != module && left.contains(name));
        }
        imports.retain(|(_, names)| !names.is_empty());
        if imports.len() == before {
            return imports;
        }
    }
}

#[test]
fn the_files_of_code_import_without_a_circle() {
    let code = Path::new(env!("CARGO_MANIFEST_DIR")).join("code");
    let mut files = sources(&code);
    files.retain(|path| !path.ends_with("mod.rs"));
    assert!(files.len() > 20, "src/engine/code has moved");
    let imports = |path: &PathBuf| {
        let module = path.file_stem().unwrap().to_string_lossy().into_owned();
        (module, named_behind("crate::code::", &fs::read_to_string(path).unwrap()))
    };
    let circles = in_circles(files.iter().map(imports).collect());
    assert!(circles.is_empty(), "files of src/engine/code import each other: {circles:?}");
}

#[test]
fn a_circle_is_found() {
    let module =
        |name: &str, imports: &[&str]| (name.to_owned(), imports.iter().map(|&name| name.to_owned()).collect());
    assert!(in_circles(vec![module("a", &["b", "b"]), module("b", &["c"]), module("c", &["std"])]).is_empty());
    let circles = in_circles(vec![module("a", &["b"]), module("b", &["a", "c"]), module("c", &[])]);
    assert_eq!(circles, [module("a", &["b"]), module("b", &["a"])]);
}

#[test]
fn imports_are_found() {
    let text = "//! crate::a\nuse crate::b::C;\nuse crate::{d, e::{f, g}, H};\nfn i() { crate::j::k() }\n#[cfg(test)]\nmod tests { use crate::l; }";
    assert_eq!(named(text), ["b", "d", "e", "j"]);
}
