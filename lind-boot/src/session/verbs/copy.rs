//! `session cp`: files between the host and a session, or a tar.

use std::ffi::OsStr;
use std::io::{Write, stdin, stdout};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use lind_kernel::stdio;
use lind_kernel::text::shown;
use rustix::io::Errno;
use serde_json::{Value, json};

use super::files::path;
use super::link::{Link, Refused};
use super::outside::{Directory, Found, inside, stays_inside};
use crate::cli::verbs::Cp;
use crate::failure::Failure;
use crate::session::wire;

/// One end of a copy.
enum Place {
    Session(String, PathBuf),
    Host(PathBuf),
    Tar,
}

impl Place {
    /// `NAME:PATH`, `-`, or a path of the host. One with a slash before the colon is the host's.
    fn parse(word: &Path) -> Place {
        let bytes = word.as_os_str().as_bytes();
        if bytes == b"-" {
            return Place::Tar;
        }
        let (name, rest) = match bytes.iter().position(|&byte| byte == b':') {
            Some(colon) => (&bytes[..colon], &bytes[colon + 1..]),
            None => return Place::Host(word.to_owned()),
        };
        match std::str::from_utf8(name) {
            Ok(name) if !name.is_empty() && !name.contains('/') => {
                let path = if rest.is_empty() { &b"."[..] } else { rest };
                Place::Session(name.to_owned(), PathBuf::from(OsStr::from_bytes(path)))
            }
            _ => Place::Host(word.to_owned()),
        }
    }
}

/// Copies.
///
/// # Errors
/// When a file cannot be read or written.
pub fn copy(cp: &Cp) -> Result<(), Failure> {
    match (Place::parse(&cp.from), Place::parse(&cp.to)) {
        (Place::Session(name, from), Place::Tar) => pack(&mut Link::to(&name)?, &from),
        (Place::Tar, Place::Session(name, to)) => {
            let answer =
                Link::to(&name)?.upload(json!({"do": "untar", "path": path(&to), "parents": true}), stdin().lock());
            answer.map(|answer| tell_skipped(&answer))
        }
        (Place::Session(name, from), Place::Host(to)) => copy_out(&mut Link::to(&name)?, &from, &to),
        (Place::Host(from), Place::Session(name, to)) => copy_in(&mut Link::to(&name)?, &from, &to),
        (Place::Session(name, from), Place::Session(other, to)) if name == other => {
            let mut link = Link::to(&name)?;
            let to = landing(&mut link, &from, to)?;
            let request = json!({"do": "copy", "path": path(&from), "to": path(&to), "recursive": true});
            link.ask(request).map(|answer| tell_skipped(&answer))
        }
        _ => Err(anyhow::anyhow!("one of the two must be SESSION:PATH, and the other a path of the host or -")),
    }?;
    Ok(())
}

fn tell_skipped(answer: &Value) {
    let named = answer["skipped"].as_array().map(Vec::as_slice).unwrap_or_default();
    for name in named {
        tell_left_out(&wire::bytes(name).unwrap_or_default());
    }
    let others = answer["skips"].as_u64().unwrap_or(0).saturating_sub(named.len() as u64);
    if others > 0 {
        stdio::say_line(&format!("{others} more were left out for the same reason"));
    }
}

fn tell_left_out(name: &[u8]) {
    let name = shown(name);
    stdio::say_line(&format!(
        "{name}: left out, because it is not a file, a directory or a link, or has gone meanwhile"
    ));
}

/// The errors of a file that has gone since its directory was read, or is of another kind.
const GONE_HERE: [Errno; 4] = [Errno::NOENT, Errno::NOTDIR, Errno::LOOP, Errno::NXIO];
const GONE_THERE: [&str; 5] = ["ENOENT", "ENOTDIR", "ELOOP", "EISDIR", "ENXIO"];

fn has_gone_here(error: &anyhow::Error) -> bool {
    error.root_cause().downcast_ref::<Errno>().is_some_and(|errno| GONE_HERE.contains(errno))
}

fn has_gone_there(error: &anyhow::Error) -> bool {
    let errno = error.downcast_ref::<Refused>().and_then(|refused| refused.errno.as_deref());
    errno.is_some_and(|errno| GONE_THERE.contains(&errno))
}

fn pack(link: &mut Link, from: &Path) -> Result<()> {
    let mut out = stdout().lock();
    let request = json!({"do": "tar", "path": path(from), "count": i64::MAX});
    let answer = link.parts(request, |message| out.write_all(&message.body).context("cannot write the tar"))?;
    out.flush().context("cannot write the tar")?;
    tell_skipped(&answer);
    Ok(())
}

/// The name that a copy keeps in a directory that is there. None for `DIR/.`, by which the files of
/// a directory are meant, without it.
fn kept_name(from: &Path) -> Option<&OsStr> {
    from.file_name().filter(|_| !from.as_os_str().as_bytes().ends_with(b"/."))
}

/// The path of a copy.
fn landing(link: &mut Link, from: &Path, to: PathBuf) -> Result<PathBuf> {
    let found = link.ask(json!({"do": "stat", "path": path(&to), "follow": true}));
    let is_directory = found.is_ok_and(|answer| answer["stat"]["type"] == "directory");
    match kept_name(from).filter(|_| is_directory) {
        Some(name) => Ok(to.join(name)),
        None => Ok(to),
    }
}

fn copy_in(link: &mut Link, from: &Path, to: &Path) -> Result<()> {
    let place = link.changed()?.place_of(from)?;
    let name = place.file_name().context("/: name a directory in it")?;
    let to = if kept_name(from) == from.file_name() { landing(link, &place, to.to_owned())? } else { to.to_owned() };
    let found = Directory::of(&place)?.look(name)?;
    copy_one_in(link, name, found, &to)
}

/// Copies a file of the host. A command may change the directory meanwhile: no link is followed.
fn copy_one_in(link: &mut Link, name: &OsStr, (mode, found): (u32, Found), to: &Path) -> Result<()> {
    match found {
        Found::Directory(directory, names) => {
            link.ask(json!({"do": "mkdir", "path": path(to), "parents": true, "mode": mode | 0o700}))?;
            for name in names {
                match directory.look(&name) {
                    Err(error) if has_gone_here(&error) => tell_left_out(name.as_bytes()),
                    found => copy_one_in(link, &name, found?, &to.join(&name))?,
                }
            }
        }
        Found::Link(target) => {
            let _ = link.ask(json!({"do": "remove", "path": path(to), "missing_ok": true}));
            link.ask(json!({"do": "link", "path": path(to), "target": path(&target)}))?;
        }
        Found::File(file) => {
            link.upload(json!({"do": "write", "path": path(to), "mode": mode}), file)?;
        }
        Found::Other => tell_left_out(name.as_bytes()),
    }
    Ok(())
}

fn copy_out(link: &mut Link, from: &Path, to: &Path) -> Result<()> {
    let found = link.ask(json!({"do": "stat", "path": path(from), "follow": true}))?["stat"].take();
    let to = link.changed()?.place_of(to)?;
    let name = kept_name(from).filter(|_| to.is_dir());
    let target = name.map_or_else(|| to.clone(), |name| to.join(name));
    let last = Path::new(target.file_name().with_context(|| format!("{}: has no name", to.display()))?);
    let parent = Directory::of(&target)?;
    if found["type"] != "directory" {
        return copy_bytes(link, from, &parent, last, &found);
    }
    parent.make_directory(last, 0o777)?;
    copy_tree(link, from, &parent.below(last)?)
}

fn copy_tree(link: &mut Link, from: &Path, to: &Directory) -> Result<()> {
    let mut entries: Vec<Value> = Vec::new();
    let request = json!({"do": "list_files", "path": path(from), "recursive": true, "count": 1_000_000});
    let end = link.parts(request, |message| {
        entries.extend(message.value["entries"].as_array().cloned().unwrap_or_default());
        Ok(())
    })?;
    ensure!(end["more"].as_bool() != Some(true), "{}: has too many files; copy a tar instead", from.display());
    for entry in &entries {
        let name = inside(&wire::bytes(&entry["name"]).context("the session has sent no name")?)?;
        let mode = entry["mode"].as_u64().and_then(|mode| u32::try_from(mode).ok()).unwrap_or(0o644);
        match entry["type"].as_str() {
            Some("directory") if entry["errno"].as_str().is_some_and(|errno| GONE_THERE.contains(&errno)) => {
                tell_left_out(name.as_os_str().as_bytes());
            }
            Some("directory") => {
                ensure!(entry["errno"].is_null(), "{}: cannot be read in the session", name.display());
                to.make_directory(&name, mode)?;
            }
            Some("file") => match copy_bytes(link, &from.join(&name), to, &name, entry) {
                Err(error) if has_gone_there(&error) => tell_left_out(name.as_os_str().as_bytes()),
                copied => copied?,
            },
            Some("link") => {
                // A link that has gone has no target any more.
                let Some(target) = wire::bytes(&entry["target"]).filter(|target| !target.is_empty()) else {
                    tell_left_out(name.as_os_str().as_bytes());
                    continue;
                };
                let target = Path::new(OsStr::from_bytes(&target));
                if stays_inside(&name, target) {
                    to.make_link(&name, target)?;
                } else {
                    stdio::say_line(&format!(
                        "{}: left out, because this link leads out of the directory",
                        shown(name.as_os_str().as_bytes())
                    ));
                }
            }
            _ => tell_left_out(name.as_os_str().as_bytes()),
        }
    }
    Ok(())
}

/// Copies the bytes of a file.
///
/// # Errors
/// When it cannot be read or written.
pub fn copy_bytes(link: &mut Link, from: &Path, to: &Directory, name: &Path, entry: &Value) -> Result<()> {
    let mode = entry["mode"].as_u64().and_then(|mode| u32::try_from(mode).ok()).unwrap_or(0o644);
    let mut new = to.begin(name, mode)?;
    let request = json!({"do": "read", "path": path(from), "count": i64::MAX});
    let written =
        link.parts(request, |message| new.file.write_all(&message.body).with_context(|| name.display().to_string()));
    new.finish(written.map(drop))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_a_directory_has_no_name_of_its_own() {
        let of = |word: &str| kept_name(Path::new(word)).map(|name| name.display().to_string()).unwrap_or_default();
        assert_eq!([of("/a/b"), of("a/"), of("a/."), of("."), of(".."), of("a/.b")], ["b", "a", "", "", "", ".b"]);
    }

    #[test]
    fn places_are_told_apart() {
        let of = |word: &str| match Place::parse(Path::new(word)) {
            Place::Session(name, path) => format!("{name} {}", path.display()),
            Place::Host(path) => path.display().to_string(),
            Place::Tar => "tar".to_owned(),
        };
        assert_eq!(
            [of("one:/a:b"), of("one:"), of("./a:b"), of(":x"), of("a"), of("-")],
            ["one /a:b", "one .", "./a:b", ":x", "a", "tar"]
        );
    }
}
