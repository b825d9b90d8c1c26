//! Commands on the states of overlays: what each means for the grate.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::cli::Command;
use crate::cli::overlay::{Apply, Diff, Discard, Export, Format, Log, Named, Paths, Snapshot};

/// A command that reads a state or changes it.
pub enum Verb<'a> {
    /// Show the changes.
    Diff(&'a Diff),
    /// Apply the changes to the directory below.
    Apply(&'a Apply),
    /// Throw changes away.
    Discard(&'a Discard),
    /// Show which command made each change.
    Log(&'a Log),
    /// Copy all files out.
    Export(&'a Export),
    /// Name the present contents.
    Snapshot(&'a Snapshot),
    /// Return to a snapshot.
    Rollback(&'a Snapshot),
    /// Create another head.
    Fork(&'a Named),
}

impl Export {
    /// Whether the export goes to a directory, not a tar.
    pub fn is_directory(&self) -> bool {
        self.to.as_os_str() != "-" && self.to.extension().is_none_or(|suffix| suffix != "tar")
    }

    /// Makes sure that the name does not ask for a compressed tar.
    ///
    /// # Errors
    /// When the name does.
    pub fn ensure_not_compressed(&self) -> Result<()> {
        let name = self.to.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        let packed = [".tgz", ".tbz", ".tbz2", ".txz", ".tzst"].iter().any(|ending| name.ends_with(ending));
        let in_two = name.rsplit_once('.').is_some_and(|(rest, ending)| rest.ends_with(".tar") && !ending.is_empty());
        ensure!(
            !packed && !in_two,
            "{}: lind-boot does not compress a tar; run `lind-boot export {} - | gzip >{0}`",
            self.to.display(),
            self.state.display()
        );
        Ok(())
    }

    /// Makes sure that no file is overwritten. A device or a pipe may be there.
    ///
    /// # Errors
    /// When the file exists.
    pub fn ensure_new_file(&self) -> Result<()> {
        let taken = self.to.symlink_metadata().is_ok_and(|found| found.is_file() || found.is_symlink());
        ensure!(!taken, "{}: already exists; name another file", self.to.display());
        Ok(())
    }

    /// Creates the directory of the export, and returns its path.
    ///
    /// # Errors
    /// When it exists, or would lie in the exported directory, so that the export would have no
    /// end.
    pub fn made(&self, lower: &Path) -> Result<PathBuf> {
        let shown = self.to.display();
        ensure!(self.to.symlink_metadata().is_err(), "{shown}: already exists; name a new directory");
        let to = std::path::absolute(&self.to)?;
        let parent =
            to.parent().context("has no parent directory")?.canonicalize().with_context(|| shown.to_string())?;
        let identity = |path: &Path| path.metadata().map(|found| (found.dev(), found.ino())).ok();
        let lies_in = parent.ancestors().any(|above| identity(above) == identity(lower));
        ensure!(!lies_in, "{shown}: lies in {}, which is exported; choose a directory elsewhere", lower.display());
        std::fs::create_dir(&self.to).with_context(|| shown.to_string())?;
        Ok(self.to.canonicalize()?)
    }
}

impl<'a> Verb<'a> {
    /// The verb that a command is. None if it is another command.
    pub fn of(command: &'a Command) -> Option<Verb<'a>> {
        Some(match command {
            Command::Diff(options) => Verb::Diff(options),
            Command::Apply(options) => Verb::Apply(options),
            Command::Discard(options) => Verb::Discard(options),
            Command::Log(options) => Verb::Log(options),
            Command::Export(options) => Verb::Export(options),
            Command::Snapshot(options) => Verb::Snapshot(options),
            Command::Rollback(options) => Verb::Rollback(options),
            Command::Fork(options) => Verb::Fork(options),
            _ => return None,
        })
    }
}

impl Verb<'_> {
    /// The grate's name for the verb.
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
            Verb::Discard(discard) => &discard.of.state,
            Verb::Log(log) => &log.state,
            Verb::Export(export) => &export.state,
            Verb::Snapshot(named) | Verb::Rollback(named) => &named.of.state,
            Verb::Fork(named) => &named.state,
        }
    }

    fn paths(&self) -> Option<&Paths> {
        match self {
            Verb::Diff(diff) => Some(&diff.of),
            Verb::Apply(apply) => Some(&apply.of),
            Verb::Discard(discard) => Some(&discard.of),
            _ => None,
        }
    }

    fn excludes(&self) -> &[OsString] {
        match self {
            Verb::Diff(diff) => &diff.shown.but.exclude,
            Verb::Apply(apply) => &apply.applied.but.exclude,
            Verb::Log(log) => &log.but.exclude,
            _ => &[],
        }
    }

    /// The directory below, if `--lower` names it.
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

    /// Whether the verb changes the directory below.
    pub fn changes_below(&self) -> bool {
        matches!(self, Verb::Apply(apply) if !apply.applied.dry_run)
    }

    /// Whether this is the `diff` that a dry run ends with.
    pub fn is_of_dry_run(&self) -> bool {
        matches!(self, Verb::Diff(diff) if diff.of_dry_run)
    }

    /// Whether the words behind the options are paths.
    pub fn names_paths(&self) -> bool {
        self.paths().is_some()
    }

    /// The words behind the options.
    pub fn words(&self) -> &[OsString] {
        match self {
            Verb::Snapshot(named) | Verb::Rollback(named) => std::slice::from_ref(&named.of.name),
            Verb::Fork(named) => std::slice::from_ref(&named.name),
            _ => self.paths().map_or(&[], |paths| &paths.paths),
        }
    }

    /// The options for the grate.
    pub fn flags(&self) -> Vec<OsString> {
        let chosen: &[(bool, &str)] = match self {
            Verb::Diff(Diff { shown, .. }) => &[
                (shown.stat, "--stat"),
                (shown.patch, "--patch"),
                (shown.name_status, "--name-status"),
                (shown.json, "--json"),
            ],
            Verb::Apply(Apply { applied, .. }) => {
                &[(applied.force, "--force"), (applied.dry_run, "--dry-run"), (applied.report.json, "--json")]
            }
            Verb::Discard(Discard { report, .. })
            | Verb::Snapshot(Snapshot { report, .. })
            | Verb::Rollback(Snapshot { report, .. }) => &[(report.json, "--json")],
            Verb::Export(export) => &[(export.format == Format::Overlayfs, "--overlayfs")],
            _ => &[],
        };
        let excludes = self.excludes().iter().map(|pattern| {
            let mut word = OsString::from("--exclude=");
            word.push(pattern);
            word
        });
        chosen.iter().filter(|(on, _)| *on).map(|(_, word)| OsString::from(*word)).chain(excludes).collect()
    }
}
