//! `lind-boot cache` and `lind-boot warm`: the cache of compiled code, and compiling in advance.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::IsTerminal as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use lind_engine::cache::{Cache, Content, Entry};
use lind_engine::code::delivery::{self, Delivery, ListHash};
use lind_engine::code::progress::BLANK;
use lind_engine::{AT_ONCE, CodeStore, Engine};
use lind_kernel::lock::Locked;
use lind_kernel::{stdio, text};
use serde_json::json;

use crate::cli::cache::{Clean, Command, Warm};
use crate::failure::{self, Failure};
use crate::plan::found;

const DAY: i64 = 24 * 60 * 60;

/// The age in seconds after which a file with a temporary name is not being written any more.
const WRITING: i64 = 60 * 60;

/// Runs a command on the cache.
///
/// # Errors
/// When the cache cannot be used, or a file cannot be read or removed.
pub fn run(command: &Command) -> Result<(), Failure> {
    let store = CodeStore::open()?;
    let path = store.cache_path().map(Path::to_owned).unwrap_or_default();
    let limit = store.limit;
    let Some(directory) = store.cache else {
        let why = store.unkept.unwrap_or_else(|| format!("cannot create {}", path.display()));
        return Err(anyhow::anyhow!("the cache of compiled code cannot be used: {why}").into());
    };
    let cache = Cache::new(directory, limit);
    let entries = cache.entries().with_context(|| path.display().to_string())?;
    let text = match command {
        Command::Ls(ls) => listed(entries, &path, limit, ls.json),
        Command::Clean(clean) => cleaned(&cache, &entries, clean).with_context(|| path.display().to_string())?,
    };
    failure::print(&text)
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

fn listed(mut entries: Vec<Entry>, path: &Path, limit: u64, as_json: bool) -> String {
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.used()));
    let total: u64 = entries.iter().map(|entry| entry.size).sum();
    let what = |entry: &Entry| match entry.content() {
        Content::Code => "code",
        Content::Note => "note",
        Content::Leftover => "unusable",
    };
    if as_json {
        let files = entries.iter().map(|entry| {
            json!({"name": entry.name(), "size": entry.size, "used": entry.used(), "written": entry.written, "what": what(entry)})
        });
        let files: Vec<_> = files.collect();
        let all = json!({"directory": path.display().to_string(), "limit": limit, "size": total, "files": files});
        return text::json(&format!("{all:#}\n"));
    }
    let mut text = String::new();
    let (now, notes) = (now(), entries.iter().filter(|entry| entry.content() == Content::Note).count());
    for entry in entries.iter().filter(|entry| entry.content() != Content::Note) {
        let (size, name) = (shown(entry.size), text::shown(entry.name().as_bytes()));
        let _ = writeln!(text, "{size:>9}  used {:>9}  {:<9}  {name}", age(now - entry.used()), what(entry));
    }
    let _ = writeln!(
        text,
        "{}: {} of {} in {} files, {notes} of them notes (LIND_CACHE_SIZE sets the limit)",
        text::shown(path.as_os_str().as_bytes()),
        shown(total),
        shown(limit),
        entries.len()
    );
    text
}

fn shown(bytes: u64) -> String {
    let tenths = |unit: u64| bytes.saturating_mul(10) / unit;
    let (tenths, unit) = match bytes {
        0..1024 => return format!("{bytes} B"),
        1024..0x10_0000 => (tenths(1 << 10), "KiB"),
        0x10_0000..0x4000_0000 => (tenths(1 << 20), "MiB"),
        _ => (tenths(1 << 30), "GiB"),
    };
    format!("{}.{} {unit}", tenths / 10, tenths % 10)
}

fn age(seconds: i64) -> String {
    match seconds {
        ..60 => "just now".to_owned(),
        60..3600 => format!("{} min ago", seconds / 60),
        3600..DAY => format!("{} h ago", seconds / 3600),
        _ => format!("{} d ago", seconds / DAY),
    }
}

fn cleaned(cache: &Cache, entries: &[Entry], clean: &Clean) -> Result<String> {
    let now = now();
    let removed: Vec<&Entry> = entries.iter().filter(|entry| goes(entry, clean, now)).collect();
    for entry in &removed {
        cache.remove(entry)?;
    }
    let bytes = removed.iter().map(|entry| entry.size).sum();
    Ok(format!("removed {} of {} files, {}\n", removed.len(), entries.len(), shown(bytes)))
}

fn goes(entry: &Entry, clean: &Clean, now: i64) -> bool {
    let old = clean.older.is_some_and(|days| now - entry.used() > i64::from(days) * DAY);
    // It may belong to a run that is still writing it.
    let unfinished = entry.name().starts_with('.') && now - entry.written < WRITING;
    clean.all || old || entry.content() == Content::Leftover && !unfinished
}

/// Compiles programs in advance, several at once.
///
/// # Errors
/// When the cache cannot be used, or a program could not be compiled; each failure has been
/// printed.
pub fn warm(options: &Warm) -> Result<(), Failure> {
    if let Some(folder) = &options.deliver {
        return deliver(folder, options);
    }
    let store = CodeStore::open()?;
    if store.cache.is_none() {
        let why = store.unkept.unwrap_or_else(|| "its directory cannot be created".into());
        return Err(anyhow::anyhow!("there is no cache to keep compiled code in: {why}").into());
    }
    let programs = programs(options)?;
    let engine = Engine::new(store, false)?;
    let counts = each(&programs, |path| engine.warm(path))?;
    counts.print("were ready")
}

/// Compiles programs for a package.
fn deliver(folder: &Path, options: &Warm) -> Result<(), Failure> {
    let delivery = Delivery::begin(folder)?;
    let counts = each(&programs(options)?, |path| delivery.add(path))?;
    let list = delivery.end(options.packed.as_deref())?;
    if let Some(program) = &options.seal {
        seal_file(program, &list).with_context(|| program.display().to_string())?;
    }
    counts.print("were ready")
}

/// Replaces the file of a lind-boot by one that trusts the code with this list.
fn seal_file(program: &Path, list: &ListHash) -> Result<()> {
    let mut bytes = std::fs::read(program)?;
    delivery::seal(&mut bytes, list)?;
    // A program that runs cannot be written to, but replaced.
    let aside = program.with_extension("sealed");
    std::fs::write(&aside, bytes)?;
    std::fs::set_permissions(&aside, std::fs::metadata(program)?.permissions())?;
    Ok(std::fs::rename(&aside, program)?)
}

/// The results for several programs.
struct Counts {
    began: Instant,
    all: usize,
    compiled: usize,
    failed: usize,
}

impl Counts {
    /// Prints them. `others` says what is true of the programs that were not compiled now.
    fn print(&self, others: &str) -> Result<(), Failure> {
        let Counts { began, all, compiled, failed } = *self;
        let took = began.elapsed().as_secs_f64();
        failure::print(&format!("{compiled} compiled in {took:.1} s, {} {others}\n", all - compiled - failed))?;
        if failed > 0 {
            Err(anyhow::anyhow!("{failed} of {all} programs could not be compiled").into())
        } else {
            Ok(())
        }
    }
}

/// Compiles each program, several at once, and prints what happens. `compile` returns whether there
/// was anything to do.
fn each(programs: &[PathBuf], compile: impl Fn(&Path) -> Result<bool> + Sync) -> Result<Counts, Failure> {
    let (began, left) = (Instant::now(), Mutex::new(programs.iter()));
    let (compiled, failed) = (Mutex::new(0), Mutex::new(0));
    let is_terminal = std::io::stdout().is_terminal();
    // The compiler's progress line.
    let clear_line = || {
        if is_terminal {
            stdio::say_as_it_is(BLANK)
        }
    };
    let work = || {
        loop {
            let Some(path) = left.locked().next() else { return };
            let since = Instant::now();
            match compile(path) {
                Ok(true) => {
                    *compiled.locked() += 1;
                    let took = since.elapsed().as_secs_f64();
                    let path = text::shown(path.as_os_str().as_bytes());
                    clear_line();
                    let _ = stdio::print(&format!("compiled {path} in {took:.1} s\n"));
                }
                Ok(false) => {}
                Err(error) => {
                    *failed.locked() += 1;
                    clear_line();
                    stdio::say_line(&format!("{error:#}"));
                }
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(AT_ONCE);
    std::thread::scope(|scope| {
        // A thread that cannot be started is not needed, as this one works too.
        for _ in 1..threads {
            let _ = std::thread::Builder::new().stack_size(8 << 20).spawn_scoped(scope, work);
        }
        work();
    });
    let (compiled, failed) = (*compiled.locked(), *failed.locked());
    Ok(Counts { began, all: programs.len(), compiled, failed })
}

/// The files to compile: each once, whatever links lead to it.
fn programs(options: &Warm) -> Result<Vec<PathBuf>> {
    let mut found = BTreeSet::new();
    for name in &options.programs {
        let path = found::program(name, options.root.as_ref())?;
        let path = path.canonicalize().with_context(|| path.display().to_string())?;
        if path.is_dir() {
            in_directory(&path, &mut found)?;
        } else {
            found.insert(path);
        }
    }
    Ok(found.into_iter().collect())
}

/// The programs in a directory and below: modules, and compiled code without a module beside it.
fn in_directory(folder: &Path, found: &mut BTreeSet<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let entry = entry?;
        let (path, kind) = (entry.path(), entry.file_type()?);
        if kind.is_dir() {
            in_directory(&path, found)?;
        } else if kind.is_file() && found::is_module(&path) {
            found.insert(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_and_times_are_readable() {
        assert_eq!([0, 1023, 1536, 5 << 20, 2 << 30].map(shown), ["0 B", "1023 B", "1.5 KiB", "5.0 MiB", "2.0 GiB"]);
        assert_eq!([-5, 59, 120, 7200, 3 * DAY].map(age), ["just now", "just now", "2 min ago", "2 h ago", "3 d ago"]);
    }

    fn warm(root: Option<PathBuf>, programs: Vec<PathBuf>) -> Warm {
        Warm { root, deliver: None, packed: None, seal: None, programs }
    }

    #[test]
    fn modules_are_found_once() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        std::fs::create_dir(folder.join("deep")).unwrap();
        std::fs::write(folder.join("a.wasm"), b"\0asm\x01\0\0\0").unwrap();
        std::fs::write(folder.join("deep/b"), b"\0asm\x01\0\0\0").unwrap();
        std::fs::write(folder.join("text"), b"text").unwrap();
        std::os::unix::fs::symlink("a.wasm", folder.join("link")).unwrap();
        let names = vec![folder.clone(), folder.join("link")];
        let found = programs(&warm(None, names)).unwrap();
        assert_eq!(found, [folder.join("a.wasm"), folder.join("deep/b")]);
        let of_root = |name: &str| programs(&warm(Some(folder.clone()), vec![name.into()]));
        assert_eq!(of_root("a").unwrap(), [folder.join("a.wasm")]);
        assert!(of_root("nothing").is_err() && of_root("../etc/passwd").is_err());
    }
}
