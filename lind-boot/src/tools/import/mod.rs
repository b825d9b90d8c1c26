//! `lind-boot import-settings`: makes a policy of the settings of another sandbox.
//!
//! The policy never allows more than the settings did. A setting that it cannot express is denied
//! where denying is possible, and always named on standard error. The settings are somebody's text,
//! perhaps from a project that was cloned: they are read as data, and printed with escapes.

mod claude;
mod codex;
mod draft;
mod hosts;
mod json;
mod place;
mod sandboxed;
mod srt;

use std::fs::{DirBuilder, File};
use std::io::{Read, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileTypeExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use lind_kernel::stdio;
use lind_kernel::text::shown;

use self::draft::Draft;
use self::place::Places;
use crate::cli::import::{Format, ImportSettings};
use crate::failure::{self, Failure};
use crate::named::{Changed, For, Named};
use crate::plan::policy::{Policy, file_of};
use crate::plan::source::Source;

/// The most bytes of settings.
const MOST: u64 = 1 << 20;

/// The most letters of a mistake that are printed: it may quote a value of the file.
const LONGEST: usize = 600;

/// Reads the settings, and writes the policy.
///
/// # Errors
/// A mistake in the settings, with its place, or a file that cannot be read or written.
pub fn run(options: &ImportSettings) -> Result<(), Failure> {
    let text = read(&options.file)?;
    let name = options.file.display().to_string();
    let source = Source { name: &name, text: &text };
    let draft = drafted(&source, options).map_err(|error| anyhow!(draft::short(&format!("{error:#}"), LONGEST)))?;
    let policy = policy_text(&draft, &name)?;
    for note in draft.notes() {
        stdio::say_line(&format!("{name}: {note}"));
    }
    let Some(output) = &options.output else { return failure::print(&policy) };
    let path = write(output, &policy)?;
    stdio::say_line(&format!("{}: written; lind-boot run --policy {} uses it", path.display(), output.display()));
    Ok(())
}

/// The text of the settings.
fn read(path: &Path) -> Result<String> {
    let named = Named::find("import-settings", path, For::Variables, &Changed::default())?;
    // Opening it would wait for a writer.
    let is_fifo = named.path().symlink_metadata().is_ok_and(|found| found.file_type().is_fifo());
    ensure!(!is_fifo, "import-settings {}: not a regular file", path.display());
    let file = named.read()?;
    let mut bytes = Vec::new();
    file.take(MOST + 1).read_to_end(&mut bytes).with_context(|| path.display().to_string())?;
    ensure!(bytes.len() as u64 <= MOST, "{}: has more than 1 MiB, which settings never have", path.display());
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let before = String::from_utf8_lossy(&error.as_bytes()[..at]).into_owned();
        let (line, column) = Source { name: "", text: &before }.place(at);
        anyhow!("{}:{line}:{column}: is not UTF-8", path.display())
    })
}

fn drafted(source: &Source<'_>, options: &ImportSettings) -> Result<Draft> {
    let format = options.format.map_or_else(|| detected(source), Ok)?;
    let mut draft = Draft::new(Places::of(&options.file, format)?);
    match format {
        Format::Claude => claude::read(source, &mut draft)?,
        Format::Srt => srt::read(source, &mut draft)?,
        Format::Codex => codex::read(source, &mut draft)?,
    }
    draft.format = format.word();
    Ok(draft)
}

/// The format that a file's keys say.
///
/// # Errors
/// When they say none, or the file has a mistake.
fn detected(source: &Source<'_>) -> Result<Format> {
    let (keys, known): (Vec<String>, &[(&str, Format)]) = if source.text.trim_start().starts_with('{') {
        let keys = json::parsed::<serde_json::Map<String, serde_json::Value>>(source)?;
        let known = [
            ("sandbox", Format::Claude),
            ("permissions", Format::Claude),
            ("network", Format::Srt),
            ("filesystem", Format::Srt),
        ];
        (keys.into_iter().map(|(key, _)| key).collect(), &known.clone())
    } else {
        let keys = source.read::<toml::Table>()?;
        (keys.into_iter().map(|(key, _)| key).collect(), &codex::KEYS.map(|key| (key, Format::Codex)))
    };
    let found = known.iter().find(|(key, _)| keys.iter().any(|own| own == key));
    let Some((_, format)) = found else {
        bail!(
            "{}: has no settings of a sandbox: Claude Code's have `sandbox`, srt's `network` and `filesystem`, \
             Codex's `permissions` or `sandbox_mode`",
            source.name
        )
    };
    Ok(*format)
}

/// The text of the policy, which has been read again.
fn policy_text(draft: &Draft, name: &str) -> Result<String> {
    let mut text = format!(
        "# Made from {} ({}) by `lind-boot import-settings`.\n# A path without / at its start is relative to each \
         volume: mount the project, and read-only what else is needed.\n",
        shown(name),
        draft.format
    );
    for note in draft.notes().filter(|note| note.is_lost()) {
        text += &format!("# {}\n", shown(note.to_string()));
    }
    text += &draft.policy().text()?;
    Policy::parse("the policy that was made", &text)?;
    Ok(text)
}

/// Writes a new policy, and returns its path.
fn write(name: &Path, text: &str) -> Result<PathBuf> {
    let described = || format!("-o {}", name.display());
    let path = file_of(name.as_os_str()).with_context(described)?;
    if path != name
        && let Some(folder) = path.parent()
    {
        DirBuilder::new().recursive(true).mode(0o700).create(folder).with_context(described)?;
    }
    let named = Named::find("-o", &path, For::Results, &Changed::default())?;
    let is_new = path.symlink_metadata().is_err();
    let file = named.update()?;
    let found = file.metadata().with_context(described)?;
    let (is_file, is_device) = (found.is_file(), found.file_type().is_char_device());
    ensure!(is_file || is_device, "{}: not a regular file; without -o the policy goes to standard output", described());
    ensure!(is_device || found.len() == 0, "{}: there is such a file; name another one, or remove it", described());
    let written = put(&file, text).with_context(described);
    // An empty file would be a policy that allows everything.
    if written.is_err() && is_new {
        let _ = std::fs::remove_file(named.path());
    }
    written.map(|()| path)
}

fn put(mut file: &File, text: &str) -> std::io::Result<()> {
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests;
