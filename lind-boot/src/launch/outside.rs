//! The things of a line that lie outside the guest's root: grates by name, and files that their
//! options name. All are opened here, before the walls go up, with the rights and from the
//! directory of the user who typed them.
//!
//! A file of an option is passed by number: `--policy p.toml` becomes `--policy host:0:p.toml`, and
//! the grate asks the kernel for number 0. `root:PATH` is left as it is: the grate opens PATH
//! inside the root. Only the options of grates that are found here are read, up to the first other
//! program: the words behind it belong to it.

use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use lind_engine::Engine;
use lind_engine::code::manifest::{Manifest, PLACE, Part, Takes, Use};
use lind_kernel::cage::{Installed, Line, is_grate_name};
use lind_kernel::stdio;
use rustix::fs::FileType;

use super::state_files;
use crate::files::open_as;
use crate::plan::grates::Folders;

/// The grate that `%}` starts.
const BRACKET: &str = "bracket_grate";

/// The prefix of a file inside the root.
const INSIDE: &[u8] = b"root:";

/// The grates and files that were opened.
pub struct Outside {
    /// The line, for the kernel.
    pub line: Line,
    /// The directories that grates were found in.
    pub folders: Vec<PathBuf>,
    /// The number of grates that are started before the program.
    pub grates: usize,
    /// Copies of the directories that are passed to grates: their files must be reachable behind
    /// the walls.
    pub handed: Vec<OwnedFd>,
    /// Whether these are detached, so that no path leads out of them.
    pub detached: lind_kernel::Result<()>,
}

/// Opens the files that a line names, and replaces their names in its options by numbers. If the
/// line only explains itself, /dev/null replaces files that would be written.
///
/// # Errors
/// A file that cannot be opened.
pub fn open(folders: &Folders, argv: &mut Vec<CString>, engine: &Engine, explains: bool) -> Result<Outside> {
    let mut found = Vec::new();
    let mut grates: Vec<Installed> = Vec::new();
    for word in argv.iter() {
        let name = if word.to_bytes() == b"%}" { BRACKET.as_bytes() } else { word.to_bytes() };
        if !is_grate_name(name) || grates.iter().any(|grate| grate.name.to_bytes() == name) {
            continue;
        }
        let Some(path) = str::from_utf8(name).ok().and_then(|name| folders.find(name)) else { continue };
        grates.push(grate(name, &path)?);
        found.extend(path.parent().map(Path::to_owned));
    }
    let mut files = Files { argv, files: Vec::new(), engine, explains };
    let started = files.walk(&grates)?;
    let mut files = files.files;
    let (handed, detached) = directories(&mut files)?;
    Ok(Outside { line: Line::new(grates, files), folders: found, grates: started, handed, detached })
}

/// Detaches the directories among the files, and returns a copy of each.
fn directories(files: &mut [Option<OwnedFd>]) -> Result<(Vec<OwnedFd>, lind_kernel::Result<()>)> {
    let (mut handed, mut detached) = (Vec::new(), Ok(()));
    for file in files.iter_mut().flatten() {
        if !FileType::from_raw_mode(rustix::fs::fstat(&*file)?.st_mode).is_dir() {
            continue;
        }
        match lind_kernel::detached_mount(file.as_fd(), false) {
            // The descriptor of the mount itself cannot be used to list it.
            Ok(mount) => *file = state_files::listed(&mount)?,
            Err(errno) => detached = Err(errno),
        }
        handed.push(file.try_clone()?);
    }
    Ok((handed, detached))
}

fn grate(name: &[u8], path: &Path) -> Result<Installed> {
    let open = |path: &Path| File::open(path).with_context(|| path.display().to_string());
    let file = path.file_name().map(OsStrExt::as_bytes).unwrap_or_default();
    let source = path.extension().is_some_and(|suffix| suffix == "cwasm").then(|| path.with_extension("wasm"));
    let (opened, source) = (open(path)?, source.and_then(|source| File::open(source).ok()));
    if source.is_some() && !lind_engine::is_of_this_version(opened.as_fd()) {
        stdio::say_line(&format!(
            "{} was compiled by another version; its module is compiled instead (to avoid that, run `make grates` or install again)",
            path.display()
        ));
    }
    Ok(Installed {
        name: CString::new(name)?,
        path: CString::new([b"/grates/", file].concat())?,
        file: opened.into(),
        source: source.map(Into::into),
    })
}

/// The files of a line's options.
struct Files<'a> {
    argv: &'a mut Vec<CString>,
    files: Vec<Option<OwnedFd>>,
    engine: &'a Engine,
    explains: bool,
}

impl Files<'_> {
    /// Reads the options of the line's grates, and counts the grates.
    fn walk(&mut self, grates: &[Installed]) -> Result<usize> {
        let (mut at, mut count) = (0, 0);
        while let Some(word) = self.argv.get(at).map(|word| word.to_bytes()) {
            if word != b"%{" && word != b"%}" {
                let Some(grate) = grates.iter().find(|grate| grate.name.to_bytes() == word) else { break };
                at = self.options(grate, at + 1)?;
                count += 1;
            } else {
                at += 1;
            }
        }
        Ok(count)
    }

    fn is_option(&self, at: usize) -> bool {
        self.argv.get(at).is_some_and(|word| word.to_bytes().len() > 1 && word.to_bytes()[0] == b'-')
    }

    /// Reads the options from `at` on, and returns where they end.
    fn options(&mut self, grate: &Installed, mut at: usize) -> Result<usize> {
        if !self.is_option(at) {
            return Ok(at);
        }
        let Some(manifest) = manifest(self.engine, grate) else { return Ok(at) };
        let mut place = String::new();
        while self.is_option(at) {
            let word = self.argv[at].to_bytes();
            at += 1;
            if word == b"--" {
                break;
            }
            if let Some(named) = word.strip_prefix(PLACE.as_bytes()) {
                place = format!("{}: ", String::from_utf8_lossy(named));
                continue;
            }
            let Some((takes, value)) = value_of(&manifest, word) else { continue };
            let (word, from) = value.map_or((at, 0), |from| (at - 1, from));
            at = word + 1;
            if takes.what != Use::Value && word < self.argv.len() {
                let name = String::from_utf8_lossy(grate.name.to_bytes()).into_owned();
                self.hand_over(takes, word, from).with_context(|| format!("{place}{name}"))?;
            }
        }
        Ok(at)
    }

    fn open(&self, what: Use, path: &Path) -> Result<OwnedFd> {
        if self.explains && what != Use::Reads {
            open_as(Use::Reads, Path::new("/dev/null"))
        } else {
            open_as(what, path)
        }
    }

    /// Opens a file, and the files that belong beside it.
    fn beside(&self, takes: &Takes, file: &[u8]) -> Result<Vec<Option<OwnedFd>>> {
        let path = |ending: &[u8]| PathBuf::from(std::ffi::OsString::from_vec([file, ending].concat()));
        let mut files = vec![Some(self.open(takes.what, &path(b""))?)];
        for ending in &takes.beside {
            let opened = self.open(takes.what, &path(ending.as_bytes()));
            // A file that is only read may lack the files beside it.
            files.push(if takes.what == Use::Reads { opened.ok() } else { Some(opened?) });
        }
        // The place of the directory of data files, which this state does not have.
        files.extend((takes.what == Use::State).then_some(None));
        Ok(files)
    }

    /// Opens the file that a value names, and writes its number in front of the name. The value
    /// begins at byte `from` of word `at`.
    fn hand_over(&mut self, takes: &Takes, at: usize, from: usize) -> Result<()> {
        let word = self.argv[at].to_bytes();
        let equals = word[from..].iter().position(|&byte| byte == b'=').map(|equals| from + equals);
        let (start, end) = match (takes.part, equals) {
            (Part::Whole, _) => (from, word.len()),
            (Part::Before, Some(equals)) => (from, equals),
            (Part::Behind, Some(equals)) => (equals + 1, word.len()),
            (_, None) => return Ok(()),
        };
        let file = &word[start..end];
        if file.starts_with(INSIDE) {
            return Ok(());
        }
        let number = self.files.len();
        let files = if takes.what == Use::State && !self.explains {
            state_files::state(file)?
        } else {
            self.beside(takes, file)?
        };
        self.argv[at] = CString::new([&word[..start], format!("host:{number}:").as_bytes(), &word[start..]].concat())?;
        self.files.extend(files);
        Ok(())
    }
}

/// The manifest of a grate. None if the grate cannot be run: that is reported when it is started.
fn manifest(engine: &Engine, grate: &Installed) -> Option<Manifest> {
    let path = grate.path.to_string_lossy();
    match engine.manifest(grate.file.as_fd(), &path) {
        Err(error) if error.untrusted => engine.manifest(grate.source.as_ref()?.as_fd(), &path).ok(),
        manifest => manifest.ok(),
    }
}

/// The option with a value that a word has, and where in the word the value begins, if it is not
/// the next word.
fn value_of<'m>(manifest: &'m Manifest, word: &[u8]) -> Option<(&'m Takes, Option<usize>)> {
    if let Some(long) = word.strip_prefix(b"--") {
        let equals = long.iter().position(|&byte| byte == b'=');
        let name = &long[..equals.unwrap_or(long.len())];
        let takes =
            manifest.options().find(|takes| takes.name.as_ref().is_some_and(|known| known.as_bytes() == name))?;
        return Some((takes, equals.map(|equals| equals + 3)));
    }
    // -abc is -a -b -c, up to the first that takes a value.
    word.iter().enumerate().skip(1).find_map(|(at, &letter)| {
        let takes = manifest.options().find(|takes| takes.letter == Some(char::from(letter)))?;
        Some((takes, Some(at + 1).filter(|&from| from < word.len())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        Manifest::parse(b"option p policy reads\0option o - writes\0option - preload reads=\0option n nr value\0")
            .unwrap()
    }

    #[test]
    fn values_are_where_grates_look_for_them() {
        let manifest = manifest();
        let found = |word: &str| value_of(&manifest, word.as_bytes()).map(|(takes, at)| (takes.what, at));
        assert_eq!(found("--policy"), Some((Use::Reads, None)));
        assert_eq!(found("--policy=x"), Some((Use::Reads, Some(9))));
        assert_eq!(found("-qp"), Some((Use::Reads, None)));
        assert_eq!(found("-qpx"), Some((Use::Reads, Some(3))));
        assert_eq!(found("-ox"), Some((Use::Writes, Some(2))));
        assert_eq!([found("-q"), found("--quiet"), found("--quiet=p")], [None; 3]);
    }
}
