//! The user's list of projects, `~/.config/lind/projects.toml`: in which sandbox a shell runs, by
//! its directory.
//!
//! The file gives rights. So it is not taken from the project, and nobody else may be able to
//! change it; a session that it describes cannot either (`--keep`).

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use clap::Args;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::cli::session::Start;
use crate::config;
use crate::named::shown;
use crate::plan::policy::quoted;
use crate::plan::source::{Source, nearest};

/// The time after which an unused session ends, if the project names none.
const IDLE: &str = "8h";

/// Options of `session start` that are about the one who starts it.
const NOT_HERE: [&str; 5] = ["explain", "json", "die-with-parent", "verbose", "help"];

/// The keys that are not options.
const OWN: [&str; 2] = ["access", "pass"];

/// A project that has been found.
pub struct Project {
    /// Its directory.
    pub directory: PathBuf,
    /// The name of its session.
    pub session: String,
    /// The options that its session is started with.
    pub options: Vec<OsString>,
    /// Variables of the caller that its commands get, besides the usual ones. `*` at the end of a
    /// name stands for any rest.
    pub pass: Vec<String>,
    /// The file that says so.
    pub file: PathBuf,
}

/// The contents of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    #[serde(default)]
    project: BTreeMap<String, Map<String, Value>>,
}

impl Project {
    /// Finds the innermost project that holds this directory.
    ///
    /// # Errors
    /// When none does, or the file has a mistake or could have been written by others.
    pub fn of(here: &Path) -> Result<Project> {
        let file = config::directory()?.join("projects.toml");
        let Some(text) = read(&file)? else { return Err(unlisted(here, &file)) };
        let name = shown(&file);
        let listed: Listed = Source { name: &name, text: &text }.read()?;
        let mut found: Option<(PathBuf, &str, &Map<String, Value>)> = None;
        for (key, keys) in &listed.project {
            let directory = directory(key).with_context(|| format!("{name}: [project.{}]", quoted(key)))?;
            let is_inner = found.as_ref().is_none_or(|(outer, ..)| directory.starts_with(outer));
            if here.starts_with(&directory) && is_inner {
                found = Some((directory, key, keys));
            }
        }
        let (directory, key, keys) = found.ok_or_else(|| unlisted(here, &file))?;
        Project::read(directory, keys, file).with_context(|| format!("{name}: [project.{}]", quoted(key)))
    }

    /// Reads the keys of a project.
    fn read(directory: PathBuf, keys: &Map<String, Value>, file: PathBuf) -> Result<Project> {
        let mut keys = keys.clone();
        let pass = names(keys.remove("pass"))?;
        let mut options = vec![volume(&directory, keys.remove("access"))?];
        let known = known();
        for (key, value) in &keys {
            let names: Vec<&str> = known.iter().map(String::as_str).chain(OWN).collect();
            if !names.contains(&key.as_str()) {
                let meant = nearest(key, &names).map_or_else(String::new, |name| format!("; is {name} meant?"));
                bail!(
                    "{}: is not an option of `lind-boot session start` for a project{meant}",
                    lind_kernel::text::shown(key)
                );
            }
            options.extend(words(key, value)?);
        }
        if !keys.contains_key("idle") {
            options.push(format!("--idle={IDLE}").into());
        }
        // Commands may not change what gives them their rights.
        options.push(option("keep", file.as_os_str()));
        options.extend(file.parent().map(|folder| option("keep", folder.as_os_str())));
        let session = session(&directory, &options);
        Ok(Project { directory, session, options, pass, file })
    }
}

/// The text of the file. None if there is no file.
///
/// # Errors
/// When somebody else may write to it, or replace it.
fn read(path: &Path) -> Result<Option<String>> {
    let file = match File::open(path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        file => file.with_context(|| shown(path))?,
    };
    let found = file.metadata().with_context(|| shown(path))?;
    ensure!(found.is_file(), "{}: is not a file", shown(path));
    ensure_own(path, &found)?;
    let real = path.canonicalize().with_context(|| shown(path))?;
    for folder in real.ancestors().skip(1) {
        ensure_own(folder, &folder.metadata().with_context(|| shown(folder))?)?;
    }
    Ok(Some(std::io::read_to_string(file).with_context(|| shown(path))?))
}

/// # Errors
/// When others may change this file, or what is in this directory.
fn ensure_own(path: &Path, found: &Metadata) -> Result<()> {
    let user = rustix::process::geteuid().as_raw();
    let path = shown(path);
    ensure!(
        [0, user].contains(&found.uid()),
        "{path}: belongs to another user, who could give your shell other rights"
    );
    let is_shared = found.mode() & 0o022 != 0;
    let is_sticky = found.is_dir() && found.mode() & 0o1000 != 0;
    ensure!(
        !is_shared || is_sticky,
        "{path}: others may write to it, and could give your shell other rights: `chmod go-w {}`",
        lind_kernel::text::shell_word(path.as_bytes())
    );
    Ok(())
}

/// The directory that a key names.
fn directory(key: &str) -> Result<PathBuf> {
    let path = match key.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/')) {
        Some(rest) => {
            let home = lind_engine::homes().next().context("there is no home directory: name the whole path")?;
            home.canonicalize().with_context(|| shown(&home))?.join(rest.trim_start_matches('/'))
        }
        None => PathBuf::from(key),
    };
    let is_plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    ensure!(path.is_absolute() && is_plain, "a project is a directory that begins with / or ~/, without `..`");
    Ok(path.components().collect())
}

/// The option that shows the project.
fn volume(directory: &Path, access: Option<Value>) -> Result<OsString> {
    let access = access.map_or_else(
        || Ok("rw".to_owned()),
        |access| {
            let text = access.as_str().map(str::to_owned);
            text.ok_or_else(|| anyhow!("access: expected a text: \"rw\", \"ro\", \"overlay\" or \"overlay=STATE\""))
        },
    )?;
    let is_known = ["rw", "ro", "overlay"].contains(&access.as_str()) || access.starts_with("overlay=");
    ensure!(is_known, "access: must be \"rw\", \"ro\", \"overlay\" or \"overlay=STATE\"");
    ensure!(
        !directory.as_os_str().as_bytes().contains(&b':'),
        "a project whose path has a colon cannot be shown at the same path: move it"
    );
    let mut word = OsString::from("--volume=");
    word.push(directory);
    word.push(format!(":{access}"));
    Ok(word)
}

/// The options of `session start` that a project may have as keys.
fn known() -> Vec<String> {
    let all = Start::augment_args(clap::Command::new("start"));
    let shown = all.get_arguments().filter(|option| !option.is_hide_set());
    shown.filter_map(|option| option.get_long()).filter(|name| !NOT_HERE.contains(name)).map(str::to_owned).collect()
}

/// The words of an option.
fn words(key: &str, value: &Value) -> Result<Vec<OsString>> {
    Ok(match value {
        Value::String(text) => vec![option(key, OsStr::new(text))],
        Value::Number(number) => vec![option(key, OsStr::new(&number.to_string()))],
        Value::Bool(true) => vec![format!("--{key}").into()],
        Value::Bool(false) => Vec::new(),
        Value::Array(all) if !all.iter().any(|one| matches!(one, Value::Array(_) | Value::Bool(_))) => {
            all.iter().map(|one| words(key, one)).collect::<Result<Vec<_>>>()?.concat()
        }
        _ => bail!("{key}: expected a text, a number, true, or a list of texts"),
    })
}

fn option(key: &str, value: &OsStr) -> OsString {
    let mut word = OsString::from(format!("--{key}="));
    word.push(value);
    word
}

/// The names of variables.
fn names(value: Option<Value>) -> Result<Vec<String>> {
    let Some(value) = value else { return Ok(Vec::new()) };
    let wrong = "pass: expected a list of names of variables, such as [\"CI\", \"GIT_AUTHOR_*\"]";
    let names: Vec<String> = serde_json::from_value(value).map_err(|_| anyhow!(wrong))?;
    for name in &names {
        let stem = name.strip_suffix('*').unwrap_or(name);
        ensure!(!stem.is_empty() && !stem.contains(['=', '*', '\0']), "{wrong}");
    }
    Ok(names)
}

/// The name of the session: one for each project, image and set of options, so that a change of the
/// file holds for the next shell.
fn session(directory: &Path, options: &[OsString]) -> String {
    let mut hash = blake3::Hasher::new();
    let image = std::env::var_os("LIND_ROOT").unwrap_or_default();
    for part in [directory.as_os_str(), &image].into_iter().chain(options.iter().map(OsString::as_os_str)) {
        hash.update(&part.len().to_le_bytes());
        hash.update(part.as_bytes());
    }
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    let name: String = name.chars().filter(|c| c.is_ascii_alphanumeric() || "-_".contains(*c)).take(20).collect();
    format!("sh-{name}-{}", &hash.finalize().to_hex()[..20])
}

/// The error of a directory that is in no project.
#[derive(Debug)]
pub struct Unlisted {
    here: PathBuf,
    file: PathBuf,
}

impl std::error::Error for Unlisted {}

impl fmt::Display for Unlisted {
    /// Several lines: the last two are those to add.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (here, file) = (shown(&self.here), shown(&self.file));
        write!(to, "{here} lies in no project of {file}; ")?;
        match self.here.to_str() {
            Some(text) => write!(
                to,
                "add these two lines to run its commands in a sandbox, or those of a directory above it:\n\
                 [project.{}]\npolicy = \"agent\"",
                quoted(text)
            ),
            None => to.write_str("a directory whose name is not UTF-8 cannot be one"),
        }
    }
}

fn unlisted(here: &Path, file: &Path) -> anyhow::Error {
    Unlisted { here: here.to_owned(), file: file.to_owned() }.into()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn project(text: &str) -> Result<Project> {
        let keys: Map<String, Value> = toml::from_str(text)?;
        Project::read("/work/a b".into(), &keys, "/home/u/.config/lind/projects.toml".into())
    }

    #[test]
    fn keys_are_options() {
        let keys = "policy = \"build\"\nallow = [\"a.org\", \"b.org:443\"]\nread-only = true\nask = true\ncages = 9\naccess = \"overlay=x\"\npass = [\"CI\", \"GIT_*\"]";
        let found = project(keys).unwrap();
        let words: Vec<_> = found.options.iter().map(|word| word.to_str().unwrap()).collect();
        for word in [
            "--volume=/work/a b:overlay=x",
            "--policy=build",
            "--allow=a.org",
            "--allow=b.org:443",
            "--read-only",
            "--ask",
            "--cages=9",
            "--idle=8h",
            "--keep=/home/u/.config/lind/projects.toml",
            "--keep=/home/u/.config/lind",
        ] {
            assert!(words.contains(&word), "{word}: {words:?}");
        }
        assert_eq!(found.pass, ["CI", "GIT_*"]);
        assert!(found.session.starts_with("sh-ab-") && found.session.len() <= 48, "{}", found.session);
        assert!(!project("idle = \"1m\"").unwrap().options.contains(&"--idle=8h".into()));
        assert_ne!(project("").unwrap().session, project("policy = \"build\"").unwrap().session);
    }

    #[test]
    fn mistakes_are_told() {
        for (text, why) in [
            ("polcy = \"x\"", "polcy: is not an option of `lind-boot session start` for a project; is policy meant?"),
            ("json = true", "json: is not an option"),
            ("overlay-all = \"x\"", "overlay-all: is not an option"),
            ("access = \"x\"", "access: must be"),
            ("access = 1", "access: expected a text"),
            ("pass = \"x\"", "pass: expected"),
            ("pass = [\"*\"]", "pass: expected"),
            ("pass = [\"A=1\"]", "pass: expected"),
            ("allow = [[\"x\"]]", "allow: expected"),
            ("memory = {}", "memory: expected"),
        ] {
            let said = project(text).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(said.starts_with(why), "{text}: {said}");
        }
        for wrong in ["a", "./a", "/a/../b", "~other/a", ""] {
            assert!(directory(wrong).is_err(), "{wrong}");
        }
        assert_eq!(directory("/a/b/").unwrap(), Path::new("/a/b"));
    }

    #[test]
    fn others_may_not_write_it() {
        let folder = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        let file = top.join("projects.toml");
        assert!(read(&file).unwrap().is_none());
        std::fs::write(&file, "x").unwrap();
        let mode = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        mode(&file, 0o644);
        assert_eq!(read(&file).unwrap().as_deref(), Some("x"));
        for wrong in [0o664, 0o646] {
            mode(&file, wrong);
            assert!(read(&file).unwrap_err().to_string().contains("chmod go-w"));
        }
        mode(&file, 0o600);
        mode(&top, 0o777);
        assert!(read(&file).is_err());
        mode(&top, 0o700);
        assert!(read(&file).is_ok());
    }
}
