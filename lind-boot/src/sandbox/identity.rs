//! The name under which commits are made: the user's, from git's own settings on the host.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::fs::{Mode, OFlags};

use crate::plan::volume::Volume;

/// The most bytes that are read of a repository's settings.
const MOST: u64 = 64 << 10;

/// The longest name or address, in bytes.
const LONGEST: usize = 200;

/// The variables that give git `user.name` and `user.email`. None are set if the image has no git,
/// if no volume can be changed, or if a repository in one has settings of its own, which the
/// variables would override.
pub fn variables(image: &Path, volumes: &[Volume]) -> Vec<OsString> {
    let has_git = ["git", "git.cwasm", "git.wasm"].iter().any(|name| image.join("bin").join(name).exists());
    let mut changed = volumes.iter().filter(|volume| volume.can_be_changed()).peekable();
    if !has_git || changed.peek().is_none() || changed.any(|volume| names_a_user(&volume.host)) {
        return Vec::new();
    }
    of_git(&global())
}

/// Whether a repository's settings name a user. A guest may have written them, so nothing else is
/// taken from them.
fn names_a_user(project: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::open(project.join(".git/config"), flags, Mode::empty()) else { return false };
    let mut text = Vec::new();
    let _ = File::from(file).take(MOST).read_to_end(&mut text);
    text.to_ascii_lowercase().windows(5).any(|word| word == b"[user")
}

/// The settings of git on the host, read outside of any repository: its settings may be somebody
/// else's, and name programs.
fn global() -> Vec<u8> {
    let mut git = Command::new("git");
    git.args(["config", "--global", "--null", "--get-regexp", r"^user\.(name|email)$"]);
    let done = git.current_dir("/").stdin(Stdio::null()).stderr(Stdio::null()).output();
    done.map(|done| done.stdout).unwrap_or_default()
}

/// The variables for records of a key, a line break and a value, each ended by a zero byte. The
/// last record of a key counts, as in git.
fn of_git(records: &[u8]) -> Vec<OsString> {
    let find = |key: &str| {
        let mut all = records.split(|&byte| byte == 0).rev();
        all.find_map(|record| record.strip_prefix(key.as_bytes())?.strip_prefix(b"\n"))
            .filter(|value| !value.is_empty() && value.len() <= LONGEST)
    };
    let found: Vec<_> = ["user.name", "user.email"].into_iter().filter_map(|key| Some((key, find(key)?))).collect();
    let mut words = Vec::new();
    for (number, (key, value)) in found.iter().enumerate() {
        words.push(format!("GIT_CONFIG_KEY_{number}={key}").into());
        let mut word = format!("GIT_CONFIG_VALUE_{number}=").into_bytes();
        word.extend_from_slice(value);
        words.push(OsString::from_vec(word));
    }
    if !found.is_empty() {
        words.push(format!("GIT_CONFIG_COUNT={}", found.len()).into());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_of_each_key_counts() {
        let words = of_git(b"user.name\nA\0user.email\na@b\0user.name\nB C\0");
        let expected = [
            "GIT_CONFIG_KEY_0=user.name",
            "GIT_CONFIG_VALUE_0=B C",
            "GIT_CONFIG_KEY_1=user.email",
            "GIT_CONFIG_VALUE_1=a@b",
            "GIT_CONFIG_COUNT=2",
        ];
        assert_eq!(words, expected);
        assert!(of_git(b"").is_empty());
    }

    #[test]
    fn a_repository_of_its_own_user_keeps_him() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".git")).unwrap();
        assert!(!names_a_user(folder.path()));
        std::fs::write(folder.path().join(".git/config"), "[core]\n[User]\n\tname = A\n").unwrap();
        assert!(names_a_user(folder.path()));
    }
}
