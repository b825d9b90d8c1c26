//! Writes a policy that allows what a run did. Each grate notes its part of that in a file in
//! memory; this makes one file of them that people can read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{DirBuilder, File};
use std::io::{Seek, SeekFrom, Write as _};
use std::os::fd::AsFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use lind_kernel::text;
use serde_json::Value;

use super::notes::Notes;
use super::used::noted;
use crate::amount::with_headroom;
use crate::cli::sandbox::{Amounts, Network};
use crate::named::{Changed, For, Named};
use crate::plan::policy::{Policy, Protect, UNLEARNED, file_of};
use crate::plan::relative;

/// The number of new names from which their whole directory is allowed: the next run creates other
/// names.
const MANY: usize = 3;

/// The number of hexadecimal digits from which a name is the hash of contents.
const HASH: usize = 16;

/// The text of the file until a run has ended: not a valid policy, so that it is not used as one.
fn unlearned() -> String {
    format!("# No run has ended yet that this policy is to be learned from.\n{UNLEARNED} = true\n")
}

/// Learns a policy from a run.
pub struct Learner {
    name: PathBuf,
    file: File,
    /// The policy that was in the file: it is extended.
    before: Option<Policy>,
    limits: Arc<Notes>,
    network: Notes,
    files: Notes,
    /// The policy of the run itself.
    base: Policy,
    places: Places,
    /// The guest's paths of the volumes that the user named: paths in the policy are relative to
    /// one of them.
    guests: Vec<PathBuf>,
    command: String,
}

/// The directories by which a guest's paths are told apart.
#[derive(Default)]
pub struct Places {
    /// Directories in memory, empty when the command starts.
    pub private: Vec<PathBuf>,
    /// Volumes.
    pub volumes: Vec<PathBuf>,
}

impl Learner {
    /// Opens or creates the file of the policy.
    ///
    /// # Errors
    /// When it cannot be written, or does not have a policy.
    pub fn new(name: &Path, command: String, changed: &Changed) -> Result<Learner> {
        let shown = || format!("--learn {}", name.display());
        let path = file_of(name.as_os_str()).with_context(shown)?;
        if path != name
            && let Some(folder) = path.parent()
        {
            DirBuilder::new().recursive(true).mode(0o700).create(folder).with_context(shown)?;
        }
        let file = Named::find("--learn", &path, For::Results, changed)?.update()?;
        // The old contents must be read to be extended, which a pipe does not allow.
        ensure!(file.metadata()?.is_file(), "{}: not a regular file", shown());
        let text = std::io::read_to_string(&file).with_context(shown)?;
        let is_new = text.trim().is_empty();
        let before = if is_new || text == unlearned() { None } else { Some(Policy::parse(&shown(), &text)?) };
        // An empty file would be a policy that allows everything, should the run not end well.
        if is_new {
            (&file).write_all(unlearned().as_bytes()).with_context(shown)?;
        }
        lind_kernel::fd::keep_also(file.as_fd());
        let [limits, network, files] = ["limits", "network", "files"].map(Notes::new);
        Ok(Learner {
            name: name.to_owned(),
            file,
            before,
            limits: Arc::new(limits?),
            network: network?,
            files: files?,
            base: Policy::default(),
            places: Places::default(),
            guests: Vec::new(),
            command,
        })
    }

    /// Sets the policy and the directories of the run.
    pub fn within(&mut self, base: Policy, places: Places, guests: Vec<PathBuf>) {
        self.guests = guests;
        self.base = base;
        self.places = places;
    }

    /// The files in which the grates note limits, addresses and files.
    pub fn paths(&self) -> [String; 3] {
        [self.limits.path(), self.network.path(), self.files.path()]
    }

    /// Writes the policy, at the end of the run.
    ///
    /// # Errors
    /// When it could not be written: then the file is unchanged.
    pub fn write(&self) -> Result<()> {
        let shown = || format!("--learn {}", self.name.display());
        let learned = self.learned().with_context(shown)?;
        let policy = self.before.as_ref().map_or(learned.clone(), |before| before.widened(&learned));
        let text = format!(
            "# Learned from: {}\n# All else is refused. Edit this file, or learn into it again to allow more.\n{}",
            text::shown(&self.command),
            policy.text().with_context(shown)?
        );
        let mut file = &self.file;
        file.seek(SeekFrom::Start(0)).with_context(shown)?;
        file.write_all(text.as_bytes()).with_context(shown)?;
        self.file.set_len(text.len() as u64).with_context(shown)
    }

    fn learned(&self) -> Result<Policy> {
        let files = self.files.read()?;
        let list = |key: &str| strings(&files, key);
        let (read, write) = fold(list("read"), list("write"), &list("made"), &list("moved"), &self.places);
        let relative = |all: Vec<String>| -> BTreeSet<String> {
            all.into_iter().map(|path| relative::shortened(path, &self.guests)).collect()
        };
        Ok(Policy {
            network: Some(Network::None),
            allow: Some(strings(&self.network.read()?, "allow").iter().map(|rule| host_of(rule)).collect()),
            limits: self.limited(&self.limits.read()?),
            calls: Some(list("calls").into_iter().collect()),
            read: Some(relative(read).into_iter().collect()),
            write: Some(relative(write).into_iter().collect()),
            programs: Some(relative(list("programs").into_iter().collect()).into_iter().collect()),
            ..self.base.clone()
        })
    }

    /// Limits with room above what the run used, but not above the limits of the run.
    fn limited(&self, used: &Value) -> Amounts {
        let most = self.base.limits.set();
        Amounts::of(|name| {
            let amount = with_headroom(name, used.get(noted(name))?.as_u64()?);
            Some(most.iter().find(|(limit, _)| *limit == name).map_or(amount, |(_, most)| amount.min(*most)))
        })
    }
}

impl Policy {
    /// A policy that allows what either of the two allows.
    fn widened(&self, by: &Policy) -> Policy {
        let all = |a: &[String], b: &[String]| {
            a.iter().chain(b).cloned().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()
        };
        // A list that is missing allows everything.
        let both = |a: &Option<Vec<String>>, b: &Option<Vec<String>>| Some(all(a.as_ref()?, b.as_ref()?));
        let of = |list: &Option<Vec<String>>| list.clone().unwrap_or_default();
        let names = self.protect.names.iter().filter(|name| by.protect.names.contains(name)).cloned().collect();
        let hidden = self.protect.hidden && by.protect.hidden;
        let except = all(&self.protect.except, &by.protect.except);
        let program = self.program.iter().filter(|(name, rules)| by.program.get(*name) == Some(rules));
        Policy {
            network: if self.network == Some(Network::Host) { self.network } else { by.network },
            allow: Some(all(&of(&self.allow), &of(&by.allow))),
            read_only: self.read_only && by.read_only,
            protect: Protect { names, hidden, except },
            limits: self.limits.widened(&by.limits),
            calls: both(&self.calls, &by.calls),
            read: both(&self.read, &by.read),
            write: both(&self.write, &by.write),
            programs: both(&self.programs, &by.programs),
            program: program.map(|(name, rules)| (name.clone(), rules.clone())).collect(),
        }
    }
}

fn strings(table: &Value, key: &str) -> BTreeSet<String> {
    let all = table.get(key).and_then(Value::as_array).into_iter().flatten();
    all.filter_map(|text| text.as_str().map(str::to_owned)).collect()
}

/// A rule of a connection as HOST:PORT; other rules unchanged.
fn host_of(rule: &str) -> String {
    match rule.split(' ').collect::<Vec<_>>()[..] {
        ["out", "tcp", host, port] if host.contains(':') => format!("[{host}]:{port}"),
        ["out", "tcp", host, port] => format!("{host}:{port}"),
        _ => rule.to_owned(),
    }
}

/// Makes lists of patterns from the paths that were read and written. A directory is allowed whole
/// where the next run will have other names in it.
fn fold(
    read: BTreeSet<String>,
    write: BTreeSet<String>,
    made: &BTreeSet<String>,
    moved: &BTreeSet<String>,
    places: &Places,
) -> (Vec<String>, Vec<String>) {
    let folders = folders(made, places);
    let private = |path: &str| {
        let inside = |place: &&PathBuf| Path::new(path) != place.as_path() && Path::new(path).starts_with(place);
        places.private.iter().find(inside).and_then(|place| whole_directory(Path::new(path), place, places))
    };
    let moved = moved.iter().map(|path| below(path));
    let mut write: BTreeSet<String> =
        write.into_iter().chain(moved).map(|path| private(&path).unwrap_or(path)).collect();
    write.extend(folders.iter().map(|folder| below(folder)));
    let covers = write.iter().filter_map(|pattern| pattern.strip_suffix("/**").map(str::to_owned)).collect::<Vec<_>>();
    let covered = |path: &String| {
        let within = |folder: &String| path.starts_with(&format!("{folder}/")) && *path != below(folder);
        covers.iter().any(within)
    };
    write.retain(|path| !covered(path));
    let read = read.into_iter().map(|path| private(&path).unwrap_or(path)).collect::<BTreeSet<_>>();
    let read = read.into_iter().filter(|path| !write.contains(path) && !covered(path));
    (read.collect(), write.into_iter().collect())
}

/// The pattern for a path in a private directory. A volume inside the directory is not covered by
/// the pattern.
fn whole_directory(path: &Path, place: &Path, places: &Places) -> Option<String> {
    let holds_a_volume = |folder: &Path| places.volumes.iter().any(|volume| volume.starts_with(folder));
    if !holds_a_volume(place) {
        return Some(below(place.to_str()?));
    }
    let name = path.strip_prefix(place).ok()?.iter().next()?.to_str()?;
    let top = place.join(name);
    // A star does not match a leading dot.
    match path == top {
        _ if holds_a_volume(&top) => None,
        false => Some(below(top.to_str()?)),
        true => (!name.starts_with('.')).then(|| format!("{}/*", place.display())),
    }
}

fn below(folder: &str) -> String {
    format!("{folder}/**")
}

/// The directories of volumes in which the run created many names, or names that are hashes.
fn folders(made: &BTreeSet<String>, places: &Places) -> BTreeSet<String> {
    let in_volume = |path: &Path| places.volumes.iter().any(|volume| path != volume && path.starts_with(volume));
    let mut names: BTreeMap<PathBuf, usize> = BTreeMap::new();
    let mut found = BTreeSet::new();
    for path in made.iter().map(Path::new) {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
            continue;
        };
        if !in_volume(folder) {
            continue;
        }
        *names.entry(folder.to_owned()).or_default() += 1;
        let hexadecimal = |name: &str| name.bytes().all(|byte| byte.is_ascii_hexdigit());
        if name.len() >= HASH && hexadecimal(name) {
            // Such names are often spread over directories named after their first digits.
            let spread = folder
                .file_name()
                .and_then(|name| name.to_str())
                .is_some_and(|name| name.len() <= 2 && hexadecimal(name));
            let folder = folder.parent().filter(|parent| spread && in_volume(parent)).unwrap_or(folder);
            found.insert(folder.display().to_string());
        }
    }
    found.extend(names.into_iter().filter(|(_, count)| *count >= MANY).map(|(folder, _)| folder.display().to_string()));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amount::Kind;

    fn set(texts: &[&str]) -> BTreeSet<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn places() -> Places {
        Places { private: vec!["/tmp".into()], volumes: vec!["/p".into()] }
    }

    #[test]
    fn what_is_in_memory_is_one_directory() {
        let (read, write) =
            fold(set(&["/tmp", "/tmp/a", "/etc/b"]), set(&["/tmp/a", "/p/x"]), &set(&["/tmp/a"]), &set(&[]), &places());
        assert_eq!(write, ["/p/x", "/tmp/**"]);
        assert_eq!(read, ["/etc/b", "/tmp"]);
    }

    #[test]
    fn a_volume_in_memory_is_not_told_with_it() {
        let places = Places { private: vec!["/tmp".into()], volumes: vec!["/tmp/p".into()] };
        let (read, write) = fold(set(&["/tmp/p/b"]), set(&["/tmp/a", "/tmp/p/a"]), &set(&[]), &set(&[]), &places);
        assert_eq!((read, write), (vec!["/tmp/p/b".to_owned()], vec!["/tmp/*".to_owned(), "/tmp/p/a".to_owned()]));
        let paths = set(&["/tmp/d/e/f", "/tmp/.x"]);
        let (_, write) = fold(set(&[]), paths, &set(&[]), &set(&[]), &places);
        assert_eq!(write, ["/tmp/.x", "/tmp/d/**"]);
    }

    #[test]
    fn many_new_names_are_their_directory() {
        let made = ["/p/out/a", "/p/out/b", "/p/out/c", "/p/d", "/p/e", "/p/f"];
        let (read, write) = fold(set(&["/p/out", "/p/out/z", "/p/q"]), set(&made), &set(&made), &set(&[]), &places());
        assert_eq!(write, ["/p/d", "/p/e", "/p/f", "/p/out/**"], "the top of a volume is never one");
        assert_eq!(read, ["/p/out", "/p/q"]);
    }

    #[test]
    fn contents_are_told_by_where_they_are() {
        let made = ["/p/.git/objects/ab", "/p/.git/objects/ab/0123456789abcdef0123"];
        let (_, write) = fold(set(&[]), set(&made), &set(&made), &set(&[]), &places());
        assert_eq!(write, ["/p/.git/objects/**"]);
        let moved = ["/p/one", "/p/two"];
        let (_, write) = fold(set(&[]), set(&moved), &set(&[]), &set(&moved), &places());
        assert_eq!(write, ["/p/one", "/p/one/**", "/p/two", "/p/two/**"]);
    }

    #[test]
    fn connections_are_hosts_and_ports() {
        assert_eq!(host_of("out tcp example.org 443"), "example.org:443");
        assert_eq!(host_of("out tcp 2001:db8::1 443"), "[2001:db8::1]:443");
        assert_eq!(host_of("in tcp 127.0.0.1 *"), "in tcp 127.0.0.1 *");
    }

    #[test]
    fn learning_again_only_adds() {
        let list = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect());
        let limit = |amount: &str| Amounts { memory: Kind::Bytes.parse(amount).ok(), ..Amounts::default() };
        let one = Policy { read: list(&["/a"]), limits: limit("64M"), ..Policy::default() };
        let two = Policy { read: list(&["/b"]), limits: limit("1G"), ..Policy::default() };
        let both = one.widened(&two);
        assert_eq!((both.read, both.limits), (list(&["/a", "/b"]), limit("1G")));
        assert_eq!(Policy::default().widened(&one).read, None, "everything stays everything");
    }
}
