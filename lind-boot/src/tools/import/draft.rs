//! A policy in the making, and notes on what it does otherwise than the settings did.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

use anyhow::{Result, ensure};
use lind_kernel::text::{is_seen, shell_word, shown};

use super::hosts::{Host, Taken, is_private};
use super::place::{Place, Places, is_pattern};
use crate::cli::sandbox::Network;
use crate::plan::SCRATCH;
use crate::plan::policy::{Policy, Protect};

/// The most letters of a value that a note quotes.
const QUOTED: usize = 120;

/// The most hosts, names and paths of a policy: they become the words of a command.
const MOST: usize = 4096;

/// The directories of the image that programs read.
const IMAGE: [&str; 8] = ["/bin", "/dev", "/etc", "/grates", "/lib", "/proc", "/sys", "/usr"];

/// The fate of a setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// The policy does not say it.
    Lost,
    /// The policy allows less.
    Narrower,
    /// A sandbox keeps to it without a policy.
    Holds,
}

/// A note on one setting.
pub struct Note {
    key: String,
    value: Option<String>,
    fate: Fate,
    why: String,
}

impl Note {
    /// Whether the setting has an effect that the policy lacks.
    pub fn is_lost(&self) -> bool {
        self.fate == Fate::Lost
    }
}

impl fmt::Display for Note {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fate = match self.fate {
            Fate::Lost => "not kept",
            Fate::Narrower => "narrower",
            Fate::Holds => "holds",
        };
        write!(to, "{}", short(&self.key, QUOTED))?;
        if let Some(value) = &self.value {
            write!(to, " \"{}\"", shown(short(value, QUOTED)))?;
        }
        write!(to, ": {fate}: {}", self.why)
    }
}

/// The policy, and the notes.
pub struct Draft {
    /// The word of the settings' format.
    pub format: &'static str,
    /// Where paths lie.
    pub places: Places,
    /// Whether all of the project may be changed.
    pub changes_project: bool,
    /// Whether the host's network may be used.
    pub network: bool,
    hosts: Vec<(String, Host)>,
    denied: Vec<Host>,
    no_names: bool,
    names: Vec<String>,
    /// The same names, to look them up.
    known: BTreeSet<String>,
    writes: Vec<String>,
    reads: Option<Vec<String>>,
    read_only: bool,
    notes: Vec<Note>,
}

/// The beginning of a text that is too long to be printed.
pub fn short(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}

impl Draft {
    /// A draft that allows nothing.
    pub fn new(places: Places) -> Draft {
        Draft {
            format: "",
            places,
            changes_project: false,
            network: false,
            hosts: Vec::new(),
            denied: Vec::new(),
            no_names: false,
            names: Vec::new(),
            known: BTreeSet::new(),
            writes: Vec::new(),
            reads: None,
            read_only: false,
            notes: Vec::new(),
        }
    }

    /// The notes, in the order of the settings.
    pub fn notes(&self) -> impl Iterator<Item = &Note> {
        self.notes.iter()
    }

    /// Notes what becomes of a setting.
    pub fn note(&mut self, fate: Fate, key: impl Into<String>, value: Option<&str>, why: impl Into<String>) {
        self.notes.push(Note { key: key.into(), value: value.map(str::to_owned), fate, why: why.into() });
    }

    /// Protects names that the other sandbox protects unasked.
    pub fn protect<T: Into<String>>(&mut self, names: impl IntoIterator<Item = T>) {
        for name in names.into_iter().map(Into::into) {
            if self.known.insert(name.clone()) {
                self.names.push(name);
            }
        }
    }

    /// Allows a path to be changed.
    pub fn allow_write(&mut self, key: &str, text: &str) {
        match self.places.find(text) {
            Place::Project => self.changes_project = true,
            Place::Inside(path) if is_pattern(&path) => self.unlisted(key, text),
            Place::Inside(path) => {
                let is_folder = self.places.project.join(&path).symlink_metadata().ok().map(|found| found.is_dir());
                self.list(&path, is_folder);
            }
            Place::Outside(path) if SCRATCH.contains(&path.as_str()) => {
                self.note(
                    Fate::Narrower,
                    key,
                    Some(text),
                    format!("the sandbox has an empty {path} of its own, in memory"),
                );
            }
            Place::Outside(path) if is_pattern(&path) => self.unlisted(key, text),
            Place::Outside(path) => {
                self.list(&path, None);
                let mount = shell_word(&path);
                self.note(
                    Fate::Lost,
                    key,
                    Some(text),
                    format!("a policy mounts nothing; to have it there: -v {mount}"),
                );
            }
            Place::Unclear => self.unlisted(key, text),
        }
    }

    fn unlisted(&mut self, key: &str, text: &str) {
        self.note(Fate::Lost, key, Some(text), "a list of files has no such patterns; name directories");
    }

    fn list(&mut self, path: &str, is_folder: Option<bool>) {
        if is_folder != Some(true) {
            self.writes.push(path.to_owned());
        }
        if is_folder != Some(false) {
            self.writes.push(format!("{path}/**"));
        }
    }

    /// Denies changes of a path.
    pub fn deny_write(&mut self, key: &str, text: &str) {
        match self.places.find(text) {
            Place::Inside(path) => {
                let plain = text.trim_start_matches("~/").trim_start_matches("./").trim_start_matches('/');
                if path.starts_with("**/") && plain.trim_end_matches("/**") != path {
                    self.note(Fate::Narrower, key, Some(text), format!("protected in every directory, as {path}"));
                }
                let real = self.real(&path);
                self.protect(std::iter::once(path).chain(real));
            }
            Place::Outside(path) if is_pattern(&path) => self.unseen(key, text, ""),
            Place::Outside(path) => self.unseen(key, text, &format!(", or with --keep {}", shell_word(path))),
            Place::Project => self.change_nothing(key, text, "it covers the project"),
            Place::Unclear => self.change_nothing(key, text, "a policy cannot express the pattern"),
        }
    }

    /// The path in the project to which a path leads that has a link on its way.
    fn real(&self, path: &str) -> Option<String> {
        let real = self.places.project.join(path).canonicalize().ok()?;
        let inside = real.strip_prefix(&self.places.project).ok()?.to_str()?;
        (inside != path && !inside.is_empty()).then(|| inside.to_owned())
    }

    fn change_nothing(&mut self, key: &str, text: &str, why: &str) {
        self.read_only = true;
        self.note(Fate::Narrower, key, Some(text), format!("no volume can be changed, since {why}"));
    }

    /// Notes that nothing shows a path.
    pub fn unseen(&mut self, key: &str, text: &str, also: &str) {
        self.note(
            Fate::Holds,
            key,
            Some(text),
            format!("the sandbox shows only what is mounted; do not mount it with -v{also}"),
        );
    }

    /// Denies reading a path. A policy lists what may be read, and cannot leave out a name.
    pub fn deny_read(&mut self, key: &str, text: &str) {
        match self.places.find(text) {
            Place::Inside(path) => {
                let real = self.real(&path);
                let grate = self.concealed(real.as_deref().unwrap_or(&path));
                let why = format!("a policy cannot hide a file of the project; add {grate}, or do not mount it");
                self.note(Fate::Lost, key, Some(text), why);
            }
            Place::Outside(_) => self.unseen(key, text, ""),
            Place::Project => {
                self.read_nothing();
                let why = "no file of the project can be read; list in `read` what may be";
                self.note(Fate::Narrower, key, Some(text), why);
            }
            Place::Unclear => {
                let why = "the pattern cannot be expressed; mount only what may be read, or add --grate 'write_filter --conceal PATH'";
                self.note(Fate::Lost, key, Some(text), why);
            }
        }
    }

    /// The option that hides a path of the project.
    fn concealed(&self, path: &str) -> String {
        let whole = self.places.project.join(path);
        match whole.to_str().filter(|whole| whole.chars().all(is_seen)) {
            Some(whole) => {
                let words = format!("write_filter --conceal {}", shell_word(whole));
                format!("--grate {}", shell_word(words))
            }
            None => "--grate 'write_filter --conceal PATH'".to_owned(),
        }
    }

    /// Lets no file be read but those of the image, and those that `also_read` names.
    pub fn read_nothing(&mut self) {
        self.reads.get_or_insert_default();
    }

    /// Lets a path of the project be read, where others may not be.
    pub fn also_read(&mut self, key: &str, path: &str) {
        match &mut self.reads {
            Some(_) if is_pattern(path) => self.unlisted(key, path),
            Some(reads) => reads.extend([path.to_owned(), format!("{path}/**")]),
            None => {}
        }
    }

    /// Allows a host.
    pub fn allow_host(&mut self, key: &str, text: &str) {
        let host = match Host::parse(text) {
            Ok(host) => host,
            Err(why) => return self.note(Fate::Lost, key, Some(text), why),
        };
        match host.unfit() {
            Some(why) => self.note(Fate::Lost, key, Some(text), why),
            None => self.hosts.push((key.to_owned(), host)),
        }
    }

    /// Denies a host, where another rule allows it.
    pub fn deny_host(&mut self, key: &str, text: &str) {
        match Host::parse(text) {
            // A name may lead to the address, too.
            Ok(host) if !host.is_name() && !is_private(host.name()) => {
                self.allow_no_names(key, text, "a policy has no denied addresses");
                self.denied.push(host);
            }
            Ok(host) => self.denied.push(host),
            Err(why) => self.allow_no_names(key, text, why),
        }
    }

    /// Allows no host by its name, since a rule about its addresses cannot be kept.
    pub fn allow_no_names(&mut self, key: &str, text: &str, why: &str) {
        self.no_names = true;
        self.note(
            Fate::Narrower,
            key,
            Some(text),
            format!("no host is allowed by its name, since this rule cannot be kept: {why}"),
        );
    }

    /// Ends the draft, once all rules are known.
    ///
    /// # Errors
    /// When there are more rules than a sandbox can have.
    pub fn settle(&mut self) -> Result<()> {
        let lists = [self.hosts.len(), self.denied.len(), self.names.len(), self.writes.len()];
        ensure!(lists.iter().all(|rules| *rules <= MOST), "the settings have more than {MOST} rules of a kind");
        self.settle_hosts();
        self.settle_writes();
        self.settle_lists();
        Ok(())
    }

    /// Takes the denied hosts away from those that are allowed.
    fn settle_hosts(&mut self) {
        let mut notes = Vec::new();
        let mut left: Vec<(String, Host)> = Vec::new();
        for (key, host) in std::mem::take(&mut self.hosts) {
            if self.no_names && host.is_name() {
                continue;
            }
            let taken: Vec<_> = self.denied.iter().map(|denied| host.taken_by(denied)).collect();
            let ports: Vec<_> = taken
                .iter()
                .filter_map(|taken| if let Taken::Port(port) = taken { Some(*port) } else { None })
                .collect();
            let rule = host.rule();
            if taken.contains(&Taken::Everything) {
                continue;
            }
            if taken.contains(&Taken::Names) {
                notes.push((key, rule, "left out, since a name below it is denied; allow the others by their names"));
            } else if ports.is_empty() {
                left.push((key, host));
            } else {
                left.extend(host.without(&ports).into_iter().map(|host| (key.clone(), host)));
                notes.push((
                    key,
                    rule,
                    "allowed at ports 80 and 443 only, unless denied, since a port of it is denied",
                ));
            }
        }
        self.hosts = left;
        for (key, rule, why) in notes {
            self.note(Fate::Narrower, key, Some(&rule), why);
        }
    }

    /// The policy.
    pub fn policy(&self) -> Policy {
        let mut allow: Vec<String> = self.hosts.iter().map(|(_, host)| host.rule()).collect();
        allow.dedup();
        let read_only = self.read_only || !self.changes_project && self.writes.is_empty();
        let is_listed = !read_only && !self.changes_project;
        let scratch = || self.scratch().map(|path| format!("{path}/**"));
        let image = || IMAGE.iter().flat_map(|path| [(*path).to_owned(), format!("{path}/**")]).chain(["/".to_owned()]);
        let reads = self.reads.as_ref().map(|reads| {
            let own = self.scratch().map(str::to_owned).chain(scratch());
            image().chain(own).chain(reads.iter().cloned()).collect()
        });
        Policy {
            network: Some(if self.network { Network::Host } else { Network::None }),
            allow: (!allow.is_empty()).then_some(allow),
            read_only,
            protect: if read_only { Protect::default() } else { Protect::from(self.names.clone()) },
            read: reads,
            write: is_listed.then(|| scratch().chain(self.writes.iter().cloned()).collect()),
            ..Policy::default()
        }
    }

    /// The sandbox's own directories in memory, but for one that the project lies in.
    fn scratch(&self) -> impl Iterator<Item = &'static str> {
        SCRATCH.into_iter().filter(|path| !self.places.project.starts_with(Path::new(path)))
    }

    /// Notes what may not be changed although it is listed, since a name above it is protected.
    fn settle_writes(&mut self) {
        let above = |path: &str| {
            self.names.iter().find(|name| path.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('/')))
        };
        let plain = self.writes.iter().map(|path| path.strip_suffix("/**").unwrap_or(path));
        let mut kept: Vec<_> = plain.filter_map(|path| Some((path.to_owned(), above(path)?.clone()))).collect();
        kept.dedup();
        for (path, name) in kept {
            let why = format!("it cannot be changed, since {name} is protected");
            self.note(Fate::Narrower, path, None, why);
        }
    }

    /// Notes which of the sandbox's own directories a list leaves out.
    fn settle_lists(&mut self) {
        let policy = self.policy();
        if policy.write.is_none() && policy.read.is_none() {
            return;
        }
        let left_out: Vec<_> = SCRATCH.into_iter().filter(|path| !self.scratch().any(|own| own == *path)).collect();
        for path in left_out {
            let why = format!(
                "lists of files leave out {path}, since the project lies there; elsewhere the policy can name it"
            );
            self.note(Fate::Narrower, path, None, why);
        }
    }
}
