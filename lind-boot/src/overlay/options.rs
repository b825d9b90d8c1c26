//! The command lines of what is done with states.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::{Args, Subcommand};

/// One of the commands that look at a state or change it.
pub enum Verb<'a> {
    /// What is changed.
    Diff(&'a Diff),
    /// It is changed below too.
    Apply(&'a Apply),
    /// It is changed no longer.
    Discard(&'a Paths),
    /// Who did what.
    Log(&'a One),
    /// All of it elsewhere.
    Export(&'a Export),
    /// A name for what there is.
    Snapshot(&'a Named),
    /// What there was.
    Rollback(&'a Named),
    /// Twice.
    Fork(&'a Named),
}

/// Options of `diff`.
#[derive(Args, Debug)]
pub struct Diff {
    /// The state, and the paths that are meant
    #[command(flatten)]
    pub of: Paths,
    /// How much of each file
    #[arg(long)]
    pub stat: bool,
    /// As git shows it
    #[arg(short, long)]
    pub patch: bool,
    /// Kinds and names alone
    #[arg(long, conflicts_with_all = ["stat", "patch"])]
    pub name_status: bool,
    /// As JSON
    #[arg(long, conflicts_with_all = ["stat", "patch", "name_status"])]
    pub json: bool,
    /// Of `run --dry-run`: the state is one that nobody has named
    #[arg(long, hide = true)]
    pub of_dry_run: bool,
}

/// Options of `apply`.
#[derive(Args, Debug)]
pub struct Apply {
    /// The state, and the paths that are meant
    #[command(flatten)]
    pub of: Paths,
    /// Also where the directory has changed since
    #[arg(long)]
    pub force: bool,
    /// Says what would be done
    #[arg(long)]
    pub dry_run: bool,
}

/// A state, and paths.
#[derive(Args, Debug)]
pub struct Paths {
    /// The state: NAME, or a path with a slash; :HEAD behind it is another head
    pub state: OsString,
    /// Paths in the directory [default: all]
    pub paths: Vec<OsString>,
    /// Where the directory below is [default: where it was]
    #[arg(long, value_name = "DIR")]
    pub lower: Option<PathBuf>,
}

/// A state.
#[derive(Args, Debug)]
pub struct One {
    /// The state: NAME, or a path with a slash; :HEAD behind it is another head
    pub state: OsString,
}

/// A state, and a name.
#[derive(Args, Debug)]
pub struct Named {
    /// The state: NAME, or a path with a slash; :HEAD behind it is another head
    pub state: OsString,
    /// The name
    pub name: OsString,
}

/// Options of `export`.
#[derive(Args, Debug)]
pub struct Export {
    /// The state: NAME, or a path with a slash; :HEAD behind it is another head
    pub state: OsString,
    /// A directory that is not there, a FILE.tar, or - for a tar on standard output
    pub to: PathBuf,
    /// `all` that the command saw, or what is changed, as the upper directory of an `overlayfs`
    #[arg(long, value_enum, default_value_t = Format::All)]
    pub format: Format,
    /// Where the directory below is [default: where it was]
    #[arg(long, value_name = "DIR")]
    pub lower: Option<PathBuf>,
}

/// What is exported.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Everything.
    All,
    /// What is changed.
    Overlayfs,
}

/// The states of the user.
#[derive(Subcommand, Debug)]
pub enum Overlay {
    /// Lists them; of one, its snapshots and heads
    Ls {
        /// The state
        state: Option<OsString>,
    },
    /// Removes one, with all that was changed
    Rm {
        /// The state
        state: OsString,
    },
}

impl Export {
    /// Whether it is not a tar.
    pub fn is_directory(&self) -> bool {
        self.to.as_os_str() != "-" && self.to.extension().is_none_or(|suffix| suffix != "tar")
    }

    /// Makes sure that a tar is not expected to be compressed.
    ///
    /// # Errors
    /// When its name says so.
    pub fn ensure_not_compressed(&self) -> Result<()> {
        let name = self.to.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let packed = [".tgz", ".tbz", ".tbz2", ".txz", ".tzst"].iter().any(|ending| name.ends_with(ending));
        let in_two = name.rsplit_once('.').is_some_and(|(rest, ending)| rest.ends_with(".tar") && !ending.is_empty());
        ensure!(
            !packed && !in_two,
            "{}: a tar is not compressed here: lind-boot export {} - | gzip >{0}",
            self.to.display(),
            self.state.display()
        );
        Ok(())
    }

    /// Makes sure that nothing is written over: a device or a pipe may be there.
    ///
    /// # Errors
    /// When there is a file.
    pub fn ensure_new_file(&self) -> Result<()> {
        let taken = self.to.symlink_metadata().is_ok_and(|found| found.is_file() || found.is_symlink());
        ensure!(!taken, "{}: is there already", self.to.display());
        Ok(())
    }

    /// The directory, made.
    ///
    /// # Errors
    /// When there is one, or when it would be in the directory that is read: that would have no end.
    pub fn made(&self, lower: &Path) -> Result<PathBuf> {
        let shown = self.to.display();
        ensure!(self.to.symlink_metadata().is_err(), "{shown}: is there already");
        let to = std::path::absolute(&self.to)?;
        let parent = to.parent().context("no directory")?.canonicalize().with_context(|| shown.to_string())?;
        let identity = |path: &Path| path.metadata().map(|found| (found.dev(), found.ino())).ok();
        let lies_in = parent.ancestors().any(|above| identity(above) == identity(lower));
        ensure!(!lies_in, "{shown}: lies in {}, which is exported; choose a directory elsewhere", lower.display());
        std::fs::create_dir(&self.to).with_context(|| shown.to_string())?;
        Ok(self.to.canonicalize()?)
    }
}

impl Verb<'_> {
    /// What the grate calls it.
    pub fn name(&self) -> &'static str {
        match self {
            Verb::Diff(_) => "diff",
            Verb::Apply(_) => "apply",
            Verb::Discard(_) => "discard",
            Verb::Log(_) => "log",
            Verb::Export(_) => "export",
            Verb::Snapshot(_) => "snapshot",
            Verb::Rollback(_) => "rollback",
            Verb::Fork(_) => "fork",
        }
    }

    /// The state.
    pub fn state(&self) -> &OsString {
        match self {
            Verb::Diff(diff) => &diff.of.state,
            Verb::Apply(apply) => &apply.of.state,
            Verb::Discard(paths) => &paths.state,
            Verb::Log(one) => &one.state,
            Verb::Export(export) => &export.state,
            Verb::Snapshot(named) | Verb::Rollback(named) | Verb::Fork(named) => &named.state,
        }
    }

    fn paths(&self) -> Option<&Paths> {
        match self {
            Verb::Diff(diff) => Some(&diff.of),
            Verb::Apply(apply) => Some(&apply.of),
            Verb::Discard(paths) => Some(paths),
            _ => None,
        }
    }

    /// Where the directory below is, if that is said.
    pub fn lower(&self) -> Option<&PathBuf> {
        match self {
            Verb::Export(export) => export.lower.as_ref(),
            _ => self.paths()?.lower.as_ref(),
        }
    }

    /// Whether the directory below is needed.
    pub fn looks_below(&self) -> bool {
        self.paths().is_some() || matches!(self, Verb::Export(_))
    }

    /// Whether it is changed.
    pub fn changes_below(&self) -> bool {
        matches!(self, Verb::Apply(apply) if !apply.dry_run)
    }

    /// Whether it is how a dry run says what it would have changed.
    pub fn is_of_dry_run(&self) -> bool {
        matches!(self, Verb::Diff(diff) if diff.of_dry_run)
    }

    /// Whether its words are paths.
    pub fn names_paths(&self) -> bool {
        self.paths().is_some()
    }

    /// What stands behind the options.
    pub fn words(&self) -> &[OsString] {
        match self {
            Verb::Snapshot(named) | Verb::Rollback(named) | Verb::Fork(named) => std::slice::from_ref(&named.name),
            _ => self.paths().map_or(&[], |paths| &paths.paths),
        }
    }

    /// The options of the grate.
    pub fn flags(&self) -> Vec<OsString> {
        let chosen: &[(bool, &str)] = match self {
            Verb::Diff(diff) => &[
                (diff.stat, "--stat"),
                (diff.patch, "--patch"),
                (diff.name_status, "--name-status"),
                (diff.json, "--json"),
            ],
            Verb::Apply(apply) => &[(apply.force, "--force"), (apply.dry_run, "--dry-run")],
            Verb::Export(export) => &[(export.format == Format::Overlayfs, "--overlayfs")],
            _ => &[],
        };
        chosen.iter().filter(|(on, _)| *on).map(|(_, word)| OsString::from(*word)).collect()
    }
}
