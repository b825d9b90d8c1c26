//! Commands on the states of overlays when nothing runs on them. Only the overlay grate reads their
//! tables: each command starts it once, as a tool, in a sandbox that has the state and the
//! directory below it and nothing else.

mod removed;
mod verb;

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow, ensure};
use lind_kernel::stdio;
use lind_kernel::text::shown;

use crate::cli::overlay::Overlay;
use crate::failure::{self, FAILED, Failure};
use crate::plan::state::{self, State};
use crate::private;
use crate::sandbox;
pub use verb::Verb;

/// The tool's paths of the directory below the overlay, and of the one to export to.
const LOWER: &str = "/lower";
const EXPORT: &str = "/export";

/// Runs a command. Returns if no grate had to be started for it.
///
/// # Errors
/// A mistake in the command, or a state that does not exist.
pub fn run(verb: &Verb) -> Result<(), Failure> {
    let state = existing(verb.state())?;
    let lower = match verb.lower() {
        Some(lower) => lower.canonicalize().with_context(|| lower.display().to_string())?,
        None => meant(verb, &state)?,
    };
    let mut words = tool(verb.name(), &state);
    words.extend(verb.flags());
    let mut volumes = Vec::new();
    if verb.looks_below() {
        ensure_directory(&lower)?;
        volumes.push((lower.clone(), PathBuf::from(LOWER), !verb.changes_below()));
        words.extend(["--lower".into(), LOWER.into(), "--called".into(), lower.clone().into()]);
    }
    if let Verb::Export(export) = verb {
        export.ensure_not_compressed()?;
        if export.is_directory() {
            let to = export.made(&lower)?;
            volumes.push((to, EXPORT.into(), false));
            words.extend(["--to".into(), EXPORT.into()]);
        } else if export.to.as_os_str() != "-" {
            export.ensure_new_file()?;
            words.extend(["--output".into(), std::path::absolute(&export.to).map_err(anyhow::Error::from)?.into()]);
        }
    }
    words.push("--".into());
    words.extend(verb.words().iter().map(|word| below(word, &lower, verb.names_paths())));
    words.push(".".into());
    sandbox::run_tool(volumes, words).map(|never| match never {})
}

fn ensure_directory(lower: &Path) -> Result<()> {
    ensure!(
        lower.is_dir(),
        "{}: the directory below the overlay does not exist; name it with --lower DIR",
        lower.display()
    );
    Ok(())
}

/// The first words of every call of the tool.
fn tool(verb: &str, state: &State) -> Vec<OsString> {
    let mut words: Vec<OsString> =
        vec!["overlay_grate".into(), "--verb".into(), verb.into(), "--upper".into(), state.word()];
    if let Some(head) = &state.head {
        words.extend(["--head".into(), head.into()]);
    }
    words
}

fn existing(text: &OsString) -> Result<State> {
    let state = State::parse(text)?;
    ensure!(
        state.exists(),
        "{}: no such state ({}); `lind-boot overlay ls` lists the states",
        text.display(),
        state.file.display()
    );
    state.ensure_one(false)?;
    Ok(state)
}

/// A path of the host, made relative to the directory below. Other words are relative to it
/// already.
fn below(word: &OsString, lower: &Path, is_path: bool) -> OsString {
    let inside = || std::path::absolute(word).ok()?.strip_prefix(lower).ok().map(|rest| rest.as_os_str().to_owned());
    if is_path { inside().unwrap_or_else(|| word.clone()) } else { word.clone() }
}

/// The directory that a state says it belongs to. Somebody else's state could name any directory,
/// with any changes to it. So changes are applied there only if this user's own runs have made
/// them, and to that very directory.
fn meant(verb: &Verb, state: &State) -> Result<PathBuf, Failure> {
    let Belongs { lower, ino } = belongs(state)?;
    if let Verb::Apply(_) = verb {
        let found = lower.metadata().ok().map(|found| found.ino());
        let why = if !state.is_named() {
            "a state that is named by its path may have been made by others"
        } else if !state.is_ours()? {
            "the state is another user's"
        } else if found.is_some() && (ino == 0 || found != Some(ino)) {
            "the state was made for another directory of that name"
        } else {
            return Ok(lower);
        };
        return Err(anyhow!(
            "{}: {why}; if it is meant for {}, add --lower {1}",
            state.name.display(),
            lower.display()
        )
        .into());
    }
    if verb.is_of_dry_run() {
        stdio::say_line(&format!("in {}:", lower.display()));
    } else if !state.is_named() && verb.looks_below() {
        stdio::say_line(&format!("{} is a state of {}", state.name.display(), lower.display()));
    }
    Ok(lower)
}

/// The directory that a state belongs to.
struct Belongs {
    lower: PathBuf,
    /// Its inode number at the last run; 0 if that is not known.
    ino: u64,
}

/// Asks the grate, in a process of its own, which reports errors of the state itself.
fn belongs(state: &State) -> Result<Belongs, Failure> {
    let mut words = tool("lower", state);
    words.extend(["--".into(), ".".into()]);
    let own = std::env::current_exe().context("cannot find the file of lind-boot itself (mount /proc)")?;
    // The grate needs no other program.
    let root = private::empty()?;
    let said =
        Command::new(own).arg("--root").arg(root).args(words).stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    let said = said.map_err(anyhow::Error::from)?;
    if !said.status.success() {
        return Err(Failure::said());
    }
    let found =
        parsed(&said.stdout).with_context(|| format!("{}: not the state of an overlay", state.name.display()))?;
    Ok(found)
}

/// Parses `INO PATH` and a zero byte: a path may have line feeds.
fn parsed(said: &[u8]) -> Option<Belongs> {
    let said = said.strip_suffix(b"\0")?;
    let space = said.iter().position(|&byte| byte == b' ')?;
    let ino = str::from_utf8(&said[..space]).ok()?.parse().ok()?;
    let lower = PathBuf::from(OsString::from_vec(said[space + 1..].to_vec()));
    lower.is_absolute().then_some(Belongs { lower, ino })
}

/// Runs `lind-boot overlay`.
///
/// # Errors
/// When the states cannot be read or removed.
pub fn manage(command: &Overlay) -> Result<(), Failure> {
    match command {
        Overlay::Ls { state: None } => failure::print(&list()?),
        Overlay::Ls { state: Some(state) } => {
            let mut words = tool("ls", &existing(state)?);
            words.extend(["--".into(), ".".into()]);
            sandbox::run_tool(Vec::new(), words).map(|never| match never {})
        }
        Overlay::Rm { state } => {
            let state = existing(state)?;
            ensure_free(&state)?;
            removed::remove(&state)?;
            Ok(())
        }
    }
}

fn ensure_free(state: &State) -> Result<()> {
    ensure!(state.is_one(), "{}: not the state of an overlay", state.file.display());
    let file = std::fs::File::open(state.database()).with_context(|| state.file.display().to_string())?;
    let free = rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive);
    free.with_context(|| format!("{}: in use by a running command", state.name.display()))
}

fn list() -> Result<String> {
    let folder = state::folder()?;
    let Ok(entries) = std::fs::read_dir(&folder) else { return Ok(String::new()) };
    let mut rows = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        let (name, size) = if state::holds_state(&path) {
            (format!("{}/", shown(entry.file_name().as_bytes())), room(&path))
        } else if path.is_file() && path.extension().is_some_and(|suffix| suffix == "db") {
            let name = shown(path.file_stem().unwrap_or_default().as_bytes());
            (name, entry.metadata().map_or(0, |found| found.len()))
        } else {
            continue;
        };
        rows.push(format!("{name:<40} {:>10} KiB\n", size.div_ceil(1024)));
    }
    rows.sort();
    Ok(rows.concat())
}

/// The disk space of a state that is a directory: data files have holes, so their sizes do not
/// count.
fn room(folder: &Path) -> u64 {
    let files =
        [folder.to_owned(), folder.join(state::DATA)].into_iter().filter_map(|path| std::fs::read_dir(path).ok());
    files.flatten().flatten().filter_map(|entry| entry.metadata().ok()).map(|found| found.blocks() * 512).sum()
}

/// Runs this process's command line again, with overlays on all volumes that can be changed, prints
/// what it would have changed, and throws that away. Returns the command's exit status.
///
/// # Errors
/// When the command could not be started.
pub fn dry_run() -> Result<u8, Failure> {
    let own = std::env::current_exe().context("cannot find the file of lind-boot itself (mount /proc)")?;
    let folder = std::env::temp_dir().join(format!("lind-dry-run-{}", std::process::id()));
    std::fs::DirBuilder::new().create(&folder).with_context(|| folder.display().to_string())?;
    let mut words = std::env::args_os().skip(1);
    let status = Command::new(&own)
        .args(words.next())
        .arg("--overlay-all")
        .arg(&folder)
        .args(words)
        .status()
        .map_err(|error| anyhow!("{}: {error}", own.display()));
    let mut states: Vec<_> =
        std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    states.retain(|path| path.extension().is_some_and(|suffix| suffix == "db"));
    states.sort();
    for state in &states {
        let _ = Command::new(&own).args(["diff", "--of-dry-run"]).arg(state).stdin(Stdio::null()).status();
    }
    std::fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    let status = status?;
    let signal = std::os::unix::process::ExitStatusExt::signal(&status).map(|signal| 128 + signal);
    Ok(status.code().or(signal).and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILED))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_any_bytes() {
        let of = |said: &[u8]| parsed(said).map(|found| (found.ino, found.lower.into_os_string().into_vec()));
        assert_eq!(of(b"7 /a b\n\xff\0"), Some((7, b"/a b\n\xff".to_vec())));
        assert_eq!([of(b"7 a\0"), of(b"7 /a"), of(b"x /a\0"), of(b"")], [const { None }; 4]);
    }

    #[test]
    fn paths_of_the_host_are_those_below() {
        let of = |word: &str| below(&word.into(), Path::new("/a/b"), true);
        assert_eq!([of("/a/b/c/d"), of("/a/b"), of("src/x")], ["c/d", "", "src/x"].map(OsString::from));
        assert_eq!(below(&"/a/b/c".into(), Path::new("/a/b"), false), "/a/b/c");
        assert_eq!(of("/a/bc"), "/a/bc");
    }
}
