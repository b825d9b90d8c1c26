//! The place of an overlay's state: a file or directory named by its path, or one of the user's
//! states by its name.

use std::ffi::{OsStr, OsString};
use std::fs::DirBuilder;
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// The longest name of a state or a head.
const LONGEST: usize = 63;

/// The ending of the log beside a state.
pub const LOG: &str = "-wal";

/// The database in a state that is a directory.
pub const DATABASE: &str = "state.db";
/// The directory of data files in it.
pub const DATA: &str = "data";

/// The first bytes of SQLite's files, the place of the application id in them, and our id
/// (`grates/overlay/state/open.c`).
const MAGIC: &[u8] = b"SQLite format 3\0";
const ID: std::ops::Range<usize> = 68..72;
const APPLICATION: [u8; 4] = *b"lind";

/// A state and one of its heads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct State {
    /// The file or the directory.
    pub file: PathBuf,
    /// Whether it is a directory.
    pub folder: bool,
    /// The name that the user gave.
    pub name: OsString,
    /// The head; None for the one that every state has.
    pub head: Option<String>,
    named: bool,
}

impl State {
    /// Parses `NAME`, or a path with a slash in it. A slash at its end means a directory; `:HEAD`
    /// may follow.
    ///
    /// # Errors
    /// A word that cannot be a name, or is the path of something else.
    pub fn parse(text: &OsStr) -> Result<State> {
        let bytes = text.as_bytes();
        let colon = bytes.iter().rposition(|&byte| byte == b':').filter(|&at| !bytes[at..].contains(&b'/'));
        let (place, head) = colon.map_or((bytes, None), |at| (&bytes[..at], Some(&bytes[at + 1..])));
        let head = head.map(|head| name(head).map(str::to_owned)).transpose()?;
        let (bare, slash) = without_slash(place);
        let (file, folder) = if bare.contains(&b'/') {
            let file = std::path::absolute(OsStr::from_bytes(bare))?;
            let folder = is_folder(&file, slash)?;
            (file, folder)
        } else {
            named(name(bare)?, slash)?
        };
        Ok(State { file, folder, name: text.to_owned(), head, named: !bare.contains(&b'/') })
    }

    /// The default state of a directory: its name, with a hash of its path to tell it from others
    /// of that name.
    ///
    /// # Errors
    /// When the directory of states is unknown.
    pub fn of_directory(path: &Path) -> Result<State> {
        let letters = |byte: &u8| if allowed(*byte) { char::from(*byte) } else { '_' };
        let base: String = path.file_name().map_or(&b"root"[..], OsStrExt::as_bytes).iter().map(letters).collect();
        // FNV-1a.
        let hash = path
            .as_os_str()
            .as_bytes()
            .iter()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        let base: String = base.trim_start_matches(['.', '-']).chars().take(40).collect();
        State::parse(OsStr::new(&format!("{base}-{:08x}", (hash >> 32) ^ (hash & 0xffff_ffff))))
    }

    /// Creates the directory that the state is in, if it is one of the user's states.
    ///
    /// # Errors
    /// When the directory cannot be created.
    pub fn make_folder(&self) -> Result<()> {
        let Some(parent) = self.file.parent().filter(|_| self.is_named()) else { return Ok(()) };
        let made = DirBuilder::new().recursive(true).mode(0o700).create(parent);
        made.with_context(|| parent.display().to_string())
    }

    /// Makes the path of its file canonical, so that it can be compared with other paths.
    ///
    /// # Errors
    /// When its directory does not exist, or the file is a symbolic link.
    pub fn settle(&mut self) -> Result<()> {
        let (parent, name) = (
            self.file.parent().context("is a directory, not a file")?,
            self.file.file_name().context("is a directory, not a file")?,
        );
        let file = parent.canonicalize().with_context(|| parent.display().to_string())?.join(name);
        ensure!(!file.is_symlink(), "{}: is a symbolic link; name the state itself", file.display());
        self.file = file;
        Ok(())
    }

    /// Whether its file was created by overlays.
    pub fn is_one(&self) -> bool {
        self.start().is_ok_and(|start| is_own(&start))
    }

    /// Makes sure that its file does not belong to another program, as far as that can be seen
    /// without the grate, which would open a log beside the file. With `makes`, an empty file is
    /// accepted: it becomes a state.
    ///
    /// # Errors
    /// When the file is not a state.
    pub fn ensure_one(&self, makes: bool) -> Result<()> {
        let start = self.start().with_context(|| self.file.display().to_string())?;
        let has_log = std::fs::metadata(self.log()).is_ok_and(|log| log.len() > 0);
        let is_empty = start.iter().all(|&byte| byte == 0);
        ensure!(makes || has_log || !is_empty, "{}: is empty, and so not the state of an overlay", self.name.display());
        let may_be = is_own(&start) || (is_empty && !has_log) || (start.starts_with(MAGIC) && (makes || has_log));
        ensure!(may_be, "{}: not the state of an overlay", self.name.display());
        Ok(())
    }

    fn start(&self) -> std::io::Result<Vec<u8>> {
        let mut start = Vec::new();
        std::fs::File::open(self.database())?.take(ID.end as u64).read_to_end(&mut start)?;
        Ok(start)
    }

    /// Whether it was named by its name, not by its path.
    pub fn is_named(&self) -> bool {
        self.named
    }

    /// Whether all of it belongs to this user.
    ///
    /// # Errors
    /// When its owner cannot be read.
    pub fn is_ours(&self) -> Result<bool> {
        let user = rustix::process::geteuid().as_raw();
        let found = |path: &Path| path.symlink_metadata().with_context(|| path.display().to_string());
        let (own, database) = (found(&self.file)?, found(&self.database())?);
        Ok(database.is_file() && own.uid() == user && database.uid() == user)
    }

    /// Whether the state exists.
    pub fn exists(&self) -> bool {
        self.database().is_file()
    }

    /// The word that names it to the grate.
    pub fn word(&self) -> OsString {
        let mut word = self.file.clone().into_os_string();
        word.push(if self.folder { "/" } else { "" });
        word
    }

    /// The file of the database.
    pub fn database(&self) -> PathBuf {
        if self.folder { self.file.join(DATABASE) } else { self.file.clone() }
    }

    /// Whether a directory of the host contains it or a part of it.
    pub fn is_shown_by(&self, host: &Path) -> bool {
        self.file.starts_with(host) || (self.folder && host.starts_with(&self.file))
    }

    /// The log beside the database.
    pub fn log(&self) -> PathBuf {
        let mut file = self.database().into_os_string();
        file.push(LOG);
        file.into()
    }
}

/// A word without the slashes at its end, and whether there were any.
pub fn without_slash(word: &[u8]) -> (&[u8], bool) {
    let end = word.iter().rposition(|&byte| byte != b'/').map_or(0, |last| last + 1);
    (&word[..end], end < word.len())
}

/// Whether a state at this path is a directory. If the path does not exist, `slash` decides.
///
/// # Errors
/// When the path is something else.
pub fn is_folder(path: &Path, slash: bool) -> Result<bool> {
    let shown = path.display();
    let Ok(found) = path.metadata() else { return Ok(slash) };
    if !found.is_dir() {
        ensure!(!slash, "{shown}: is a file; leave out the slash at the end");
        return Ok(false);
    }
    if holds_state(path) {
        return Ok(true);
    }
    let is_empty = std::fs::read_dir(path).with_context(|| shown.to_string())?.next().is_none();
    ensure!(is_empty, "{shown}: not the state of an overlay, but a directory with other files");
    ensure!(slash, "{shown}: is an empty directory; add a slash at the end to create a state there");
    Ok(true)
}

/// Whether a directory is a state.
pub fn holds_state(path: &Path) -> bool {
    path.join(DATABASE).symlink_metadata().is_ok_and(|found| found.is_file())
}

/// The path of the user's state of this name, and whether it is a directory.
fn named(name: &str, slash: bool) -> Result<(PathBuf, bool)> {
    let (directory, file) = (folder()?.join(name), folder()?.join(format!("{name}.db")));
    if !slash && !holds_state(&directory) {
        return Ok((file, false));
    }
    ensure!(!slash || !file.exists(), "{name}: is a file ({}); leave out the slash at the end", file.display());
    is_folder(&directory, true)?;
    Ok((directory, true))
}

fn is_own(start: &[u8]) -> bool {
    start.starts_with(MAGIC) && start.get(ID) == Some(&APPLICATION[..])
}

fn allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._-".contains(&byte)
}

fn name(bytes: &[u8]) -> Result<&str> {
    let text = String::from_utf8_lossy(bytes);
    let good = !bytes.is_empty() && bytes.len() <= LONGEST && bytes.iter().all(|&byte| allowed(byte));
    ensure!(
        good && !matches!(bytes[0], b'-' | b'.'),
        "'{text}': not the name of a state: use up to {LONGEST} letters, digits, dots, dashes and underscores, or a path with a slash"
    );
    Ok(str::from_utf8(bytes)?)
}

/// The user's directory of states.
///
/// # Errors
/// When there is neither XDG_STATE_HOME nor a home directory.
pub fn folder() -> Result<PathBuf> {
    let named = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let base = named.or_else(|| Some(lind_engine::homes().next()?.join(".local/state")));
    let base = base.context(
        "cannot find the directory of states: set XDG_STATE_HOME or HOME, or name the state by a path with a slash",
    )?;
    Ok(base.join("lind/overlay"))
}

/// Splits the word of a volume, `HOST[:GUEST]:overlay[=STATE]`, into the part before `:overlay` and
/// the state.
///
/// # Errors
/// A word that cannot be the name of a state.
pub fn of_volume(word: &OsStr) -> Result<Option<(OsString, Option<State>)>> {
    const MARK: &[u8] = b":overlay";
    let bytes = word.as_bytes();
    let Some(at) = bytes.windows(MARK.len()).position(|part| part == MARK) else { return Ok(None) };
    let (rest, behind) = (OsString::from_vec(bytes[..at].to_vec()), &bytes[at + MARK.len()..]);
    match behind {
        [] => Ok(Some((rest, None))),
        [b'=', state @ ..] => Ok(Some((rest, Some(State::parse(OsStr::from_bytes(state))?)))),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_names_or_paths() {
        let of = |text: &str| State::parse(OsStr::new(text));
        assert_eq!(of("/a/b.db").unwrap().file, Path::new("/a/b.db"));
        let head = of("/a:b/c:try").unwrap();
        assert_eq!((head.file, head.head.as_deref()), ("/a:b/c".into(), Some("try")));
        assert_eq!(of("/a:b/c").unwrap().head, None);
        for wrong in ["", ":", "a:", ":b", "-a", ".a", "a b", "/a:", &"a".repeat(64)] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_slash_makes_a_directory_and_a_state_there_needs_none() {
        let folder = tempfile::tempdir().unwrap();
        let of = |name: &str| State::parse(folder.path().join(name).as_os_str());
        let made = of("new/:try").unwrap();
        assert_eq!((made.file.clone(), made.folder), (folder.path().join("new"), true));
        assert_eq!((made.word(), made.head.as_deref()), (folder.path().join("new/").into_os_string(), Some("try")));
        assert!(!of("new").unwrap().folder);
        std::fs::create_dir(folder.path().join("new")).unwrap();
        assert!(of("new/").unwrap().folder && of("new").is_err());
        std::fs::write(folder.path().join("new/state.db"), "").unwrap();
        assert!(of("new").unwrap().folder && of("new///").unwrap().folder);
        assert!(of("new").unwrap().is_shown_by(&folder.path().join("new/data")) && !of("new").unwrap().is_named());
        std::fs::write(folder.path().join("file"), "").unwrap();
        assert!(of("file/").unwrap_err().to_string().contains("leave out the slash"));
        std::fs::create_dir_all(folder.path().join("other/x")).unwrap();
        for wrong in ["other", "other/"] {
            assert!(of(wrong).unwrap_err().to_string().contains("not the state of an overlay"));
        }
    }

    #[test]
    fn directories_of_one_name_have_states_of_their_own() {
        let [one, other] = ["/a/my project", "/b/my project"].map(|path| State::of_directory(Path::new(path)).unwrap());
        assert!(one.name.to_string_lossy().starts_with("my_project-") && one != other);
        assert!(State::of_directory(Path::new("/")).is_ok() && State::of_directory(Path::new("/.x")).is_ok());
    }

    #[test]
    fn volumes_name_states() {
        let of = |word: &str| of_volume(OsStr::new(word)).unwrap();
        assert_eq!(of("/a:/b:ro"), None);
        assert_eq!(of("/a:/b:overlay"), Some(("/a:/b".into(), None)));
        let (rest, state) = of("/a:overlay=/s.db:try").unwrap();
        assert_eq!((rest, state.unwrap().head), ("/a".into(), Some("try".into())));
        assert_eq!(of("/a:overlays"), None);
    }
}
