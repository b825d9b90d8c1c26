//! Parses requests for files.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::session::wire;

/// The verbs, in the order of `enum op` in `grates/session/files.h`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// The kind, size and times of a file are asked for.
    Stat,
    /// A directory is listed.
    List,
    /// Bytes of a file.
    Read,
    /// A file is written whole.
    Write,
    /// Bytes come at a file's end.
    Append,
    /// A file gets another name.
    Rename,
    /// A file, or all that is in a directory, is copied.
    Copy,
    /// A file, or all that is in a directory, is removed.
    Remove,
    /// A directory is made.
    Mkdir,
    /// A symbolic link is made.
    Link,
    /// Changes are reported as events.
    Watch,
    /// A file, or what is in a directory, becomes a tar.
    Pack,
    /// A tar becomes files.
    Unpack,
}

/// Their names.
const NAMES: [(&str, Op); 13] = [
    ("stat", Op::Stat),
    ("list_files", Op::List),
    ("read", Op::Read),
    ("write", Op::Write),
    ("append", Op::Append),
    ("rename", Op::Rename),
    ("copy", Op::Copy),
    ("remove", Op::Remove),
    ("mkdir", Op::Mkdir),
    ("link", Op::Link),
    ("watch", Op::Watch),
    ("tar", Op::Pack),
    ("untar", Op::Unpack),
];

/// The keys that set a bit of `flags`, as `enum flag` in `grates/session/files.h` has them.
const FLAGS: [(&str, u32); 5] = [("follow", 1), ("recursive", 2), ("parents", 4), ("create", 8), ("missing_ok", 16)];
const SET_MODE: u32 = 32;
const IN_PLACE: u32 = 64;

/// The longest path, as on Linux.
const LONGEST: usize = 4096;

/// The bytes of a file that are read unless a request says how many, and the most of a tar.
const READ: i64 = 16 << 20;
const TAR: i64 = 1 << 30;

/// The entries of a directory that are listed, unless a request says how many, and the most.
const LISTED: i64 = 10_000;
const MOST_LISTED: i64 = 1_000_000;

/// A request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Ask {
    /// The verb.
    pub op: Op,
    /// How.
    pub flags: u32,
    /// The mode of a new file.
    pub mode: u32,
    /// Where to begin in the file.
    pub from: i64,
    /// How many bytes, or entries.
    pub count: i64,
    /// How many directories within one another; 0 for all.
    pub depth: u32,
    /// The path.
    pub path: Vec<u8>,
    /// The other path.
    pub other: Vec<u8>,
    /// Whether further messages bring more bytes.
    pub more: bool,
}

/// The names of all verbs.
pub fn verbs() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|(name, _)| *name)
}

impl Op {
    /// Whether a file's bytes come with it.
    pub fn takes_bytes(self) -> bool {
        matches!(self, Op::Write | Op::Append | Op::Unpack)
    }
}

impl Ask {
    /// Parses a message. None for other verbs. A path that does not begin with / is one below
    /// `workdir`.
    ///
    /// # Errors
    /// A mistake in the message.
    pub fn read(message: &Value, workdir: &Path) -> Result<Option<Ask>> {
        let named = NAMES.iter().find(|(name, _)| message["do"].as_str() == Some(name));
        let Some((_, op)) = named else { return Ok(None) };
        let is = |key: &str| message[key].as_bool() == Some(true);
        let mut flags = FLAGS.iter().filter(|(key, _)| is(key)).map(|(_, bit)| bit).sum();
        let mode = number(message, "mode")?.map(u32::try_from).transpose().context("mode")?;
        flags |= if mode.is_some() { SET_MODE } else { 0 };
        flags |= if message["atomic"].as_bool() == Some(false) { IN_PLACE } else { 0 };
        ensure!(mode.is_none_or(|mode| mode <= 0o7777), "mode: expected at most 4095, which is 0o7777");
        let most = match op {
            Op::List => LISTED,
            Op::Pack => TAR,
            _ => READ,
        };
        let count = number(message, "count")?.unwrap_or(most);
        let other = match op {
            Op::Rename | Op::Copy => path(message, "to", workdir)?,
            Op::Link => bytes(message, "target")?,
            _ => Vec::new(),
        };
        Ok(Some(Ask {
            op: *op,
            flags,
            mode: mode.unwrap_or(0),
            from: number(message, "from")?.unwrap_or(0),
            count: if *op == Op::List { count.min(MOST_LISTED) } else { count },
            depth: u32::try_from(number(message, "depth")?.unwrap_or(0)).unwrap_or(u32::MAX),
            path: path(message, "path", workdir)?,
            other,
            more: op.takes_bytes() && is("more"),
        }))
    }
}

fn number(message: &Value, key: &str) -> Result<Option<i64>> {
    match &message[key] {
        Value::Null => Ok(None),
        value => match value.as_i64().filter(|&number| number >= 0) {
            Some(number) => Ok(Some(number)),
            None => bail!("{key}: expected a number that is not negative"),
        },
    }
}

fn bytes(message: &Value, key: &str) -> Result<Vec<u8>> {
    let bytes = wire::bytes(&message[key]).with_context(|| format!("{key}: expected text, or a list of bytes"))?;
    ensure!(!bytes.is_empty() && !bytes.contains(&0), "{key}: is empty, or has a NUL byte");
    ensure!(bytes.len() < LONGEST, "{key}: is longer than {} bytes", LONGEST - 1);
    Ok(bytes)
}

fn path(message: &Value, key: &str, workdir: &Path) -> Result<Vec<u8>> {
    let mut path = bytes(message, key)?;
    if path.first() != Some(&b'/') {
        path = [workdir.as_os_str().as_encoded_bytes(), b"/", &path].concat();
    }
    // A directory may be named with a slash behind it.
    while path.len() > 1 && path.last() == Some(&b'/') {
        path.pop();
    }
    ensure!(path.len() < LONGEST, "{key}: is longer than {} bytes", LONGEST - 1);
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn requests_are_read() {
        let read = |message: Value| Ask::read(&message, Path::new("/w")).unwrap();
        assert_eq!(read(json!({"do": "exec"})), None);
        let ask =
            read(json!({"do": "write", "path": "a/", "mode": 0o640, "parents": true, "create": true, "more": true}))
                .unwrap();
        assert_eq!((ask.op, ask.flags, ask.mode, ask.more), (Op::Write, 4 | 8 | SET_MODE, 0o640, true));
        assert_eq!(ask.path, b"/w/a");
        let ask =
            read(json!({"do": "copy", "path": "/", "to": [47, 255], "recursive": true, "atomic": false})).unwrap();
        assert_eq!((&ask.path[..], &ask.other[..], ask.flags), (&b"/"[..], &b"/\xff"[..], 2 | IN_PLACE));
        assert_eq!(read(json!({"do": "list_files", "path": "/", "count": i64::MAX})).unwrap().count, MOST_LISTED);
        assert!(NAMES.iter().enumerate().all(|(at, (_, op))| at == *op as usize));
    }

    #[test]
    fn mistakes_are_named() {
        for (message, part) in [
            (json!({"do": "stat"}), "path"),
            (json!({"do": "stat", "path": ""}), "empty"),
            (json!({"do": "stat", "path": "a\u{0}"}), "NUL"),
            (json!({"do": "stat", "path": "x".repeat(5000)}), "longer"),
            (json!({"do": "rename", "path": "a"}), "to"),
            (json!({"do": "write", "path": "a", "mode": 4096}), "0o7777"),
            (json!({"do": "read", "path": "a", "from": -1}), "from"),
        ] {
            let error = format!("{:#}", Ask::read(&message, Path::new("/")).unwrap_err());
            assert!(error.contains(part), "{message}: {error}");
        }
    }
}
