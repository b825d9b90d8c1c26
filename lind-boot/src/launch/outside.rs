//! The things of a line that lie outside the guest's root: grates by name, and files that their
//! options name. All are opened here, before the walls go up, with the rights and from the
//! directory of the user who typed them.
//!
//! A file of an option is passed by number: `--policy p.toml` becomes `--policy host:0:p.toml`, and
//! the grate asks the kernel for number 0. If the grate takes TOML, that is a file with the
//! settings as JSON. `root:PATH` is left as it is for other grates, which open PATH inside the
//! root. Only the options of grates that are found here are read, up to the first other program:
//! the words behind it belong to it. Amounts become plain numbers. The words of the line are made
//! here, last.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use lind_engine::Engine;
use lind_engine::code::manifest::{Manifest, Use};
use lind_kernel::cage::{Installed, Line, is_grate_name};
use lind_kernel::stdio;
use rustix::fs::FileType;

use super::settings::{self, Inside};
use super::state_files;
use crate::files::open_as;
use crate::plan::grates::Folders;
use crate::plan::step::{self, HostFile, Setting, Step, Value, joined};
use crate::plan::words::{Found, Names, declared as option, read};

/// The grate that `%}` starts.
const BRACKET: &str = "bracket_grate";

/// The grates and files that were opened.
pub struct Outside {
    /// The line, for the kernel.
    pub line: Line,
    /// The words of the line.
    pub argv: Vec<CString>,
    /// The number of words for the first grates, which the plan has as steps.
    pub first: usize,
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

/// Opens the files that a line names, and makes the words of the line with numbers for them. The
/// line begins with `steps`; `typed` are the words behind those. If the line only explains itself,
/// /dev/null replaces files that would be written.
///
/// # Errors
/// A file that cannot be opened.
pub fn open(
    folders: &Folders,
    (mut steps, typed): (Vec<Step>, &[OsString]),
    engine: &Engine,
    explains: bool,
    root: &Inside<'_>,
) -> Result<Outside> {
    let mut found = Vec::new();
    let mut grates: Vec<Installed> = Vec::new();
    for word in step::words(&steps).iter().chain(typed) {
        let name = if word == "%}" { BRACKET.as_bytes() } else { word.as_bytes() };
        if !is_grate_name(name) || grates.iter().any(|grate| grate.name.to_bytes() == name) {
            continue;
        }
        let Some(path) = str::from_utf8(name).ok().and_then(|name| folders.find(name)) else { continue };
        grates.push(grate(name, &path)?);
        found.extend(path.parent().map(Path::to_owned));
    }
    let known = Known { grates: &grates, engine };
    declared(&mut steps, &known)?;
    let (mut further, count) = read(typed, &known)?;
    let mut files = Files { known: &known, files: Vec::new(), explains, root, count: 0 };
    if files.chain(&mut steps)? {
        files.chain(&mut further)?;
    }
    let Files { mut files, count: started, .. } = files;
    let first = step::words(&steps);
    let words = first.iter().cloned().chain(step::words(&further)).chain(typed[count..].iter().cloned());
    let argv = words.map(|word| CString::new(word.as_bytes()).with_context(|| word.to_string_lossy().into_owned()));
    let argv = argv.collect::<Result<_>>()?;
    let (handed, detached) = directories(&mut files)?;
    let line = Line::new(grates, files);
    Ok(Outside { line, argv, first: first.len(), folders: found, grates: started, handed, detached })
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

/// The grates of a line that were found.
struct Known<'a> {
    grates: &'a [Installed],
    engine: &'a Engine,
}

impl Names for Known<'_> {
    /// Other words may be programs of the root, and what follows those belongs to them.
    fn find(&self, word: &OsStr) -> Result<Found> {
        let grate = word.to_str().filter(|name| self.grate(name).is_some());
        Ok(if grate.is_some() { Found::Grate } else { Found::Program })
    }

    fn manifest(&self, name: &str) -> Option<Manifest> {
        let grate = self.grate(name)?;
        let path = grate.path.to_string_lossy();
        match self.engine.manifest(grate.file.as_fd(), &path) {
            Err(error) if error.untrusted => self.engine.manifest(grate.source.as_ref()?.as_fd(), &path).ok(),
            manifest => manifest.ok(),
        }
    }
}

impl Known<'_> {
    fn grate(&self, name: &str) -> Option<&Installed> {
        self.grates.iter().find(|grate| grate.name.to_bytes() == name.as_bytes())
    }
}

/// Checks that the grates of a chain that lind-boot has made itself declare its options so, and
/// gives their files the suffixes that the grates declare.
///
/// # Errors
/// A grate that does not declare the option, or another use of its value.
fn declared(chain: &mut [Step], known: &Known<'_>) -> Result<()> {
    for step in chain {
        let is_declared = |setting: &Setting| setting.value.uses().is_some();
        // A grate that cannot be read is reported when it is started.
        if step.settings.iter().any(is_declared)
            && let Some(manifest) = known.manifest(&step.grate)
        {
            for setting in &mut step.settings {
                let Some(uses) = setting.value.uses() else { continue };
                let takes = option(&manifest, &setting.name).filter(|takes| uses.contains(&takes.what));
                let takes = takes.with_context(|| {
                    let (grate, option) = (&step.grate, &setting.name);
                    format!("{grate}: this grate is of another version: it takes no such value for {option}")
                })?;
                if let Value::Host(file) = &mut setting.value {
                    file.beside.clone_from(&takes.beside);
                }
            }
        }
        step.inside.iter_mut().try_for_each(|chain| declared(chain, known))?;
    }
    Ok(())
}

/// The files of a line's options.
struct Files<'a> {
    known: &'a Known<'a>,
    files: Vec<Option<OwnedFd>>,
    explains: bool,
    root: &'a Inside<'a>,
    /// The number of grates whose options were read.
    count: usize,
}

impl Files<'_> {
    /// Opens the files of a chain, and replaces them by their numbers. Returns whether all of its
    /// grates were found: behind another program nothing is opened.
    fn chain(&mut self, chain: &mut [Step]) -> Result<bool> {
        for step in chain {
            if self.known.grate(&step.grate).is_none() {
                return Ok(false);
            }
            self.count += 1;
            self.step(step)?;
            for inside in &mut step.inside {
                if !self.chain(inside)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    fn step(&mut self, step: &mut Step) -> Result<()> {
        step.make_plain();
        let mut place = String::new();
        for setting in &mut step.settings {
            if let Some(named) = setting.as_place() {
                place = format!("{}: ", named.to_string_lossy());
            }
            if let Value::Host(file) = &setting.value {
                let handed = self.hand_over(file).with_context(|| format!("{place}{}", step.grate))?;
                setting.value = Value::Text(handed);
            }
        }
        Ok(())
    }

    /// Opens a file, and returns the value with its number in front of its name.
    fn hand_over(&mut self, file: &HostFile) -> Result<OsString> {
        let number = self.files.len();
        let files = match file.what {
            Use::State if !self.explains => state_files::state(file.path.as_os_str().as_bytes())?,
            Use::Toml => vec![Some(settings::open(file, self.root)?)],
            _ => self.beside(file)?,
        };
        self.files.extend(files);
        let number = format!("host:{number}:");
        let before = if file.is_inside() { OsStr::new("") } else { &file.before };
        Ok(joined([before, number.as_ref(), file.path.as_os_str(), &file.behind]))
    }

    /// Opens a file, and the files that belong beside it.
    fn beside(&self, file: &HostFile) -> Result<Vec<Option<OwnedFd>>> {
        let mut files = vec![Some(self.open(file.what, &file.path)?)];
        for ending in &file.beside {
            let opened = self.open(file.what, Path::new(&joined([file.path.as_os_str(), ending.as_ref()])));
            // A file that is only read may lack the files beside it.
            files.push(if file.what == Use::Reads { opened.ok() } else { Some(opened?) });
        }
        // The place of the directory of data files, which this state does not have.
        files.extend((file.what == Use::State).then_some(None));
        Ok(files)
    }

    fn open(&self, what: Use, path: &Path) -> Result<OwnedFd> {
        if self.explains && what != Use::Reads {
            open_as(Use::Reads, Path::new("/dev/null"))
        } else {
            open_as(what, path)
        }
    }
}
