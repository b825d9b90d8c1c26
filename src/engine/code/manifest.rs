//! The manifest of a grate: the custom section `lind.grate`, in which its module declares the calls
//! that it handles and the options that it takes.
//!
//! The section is a sequence of texts, each with a NUL at its end: a word for the grate's power
//! over the call, a space, and the call's name, its number if the table has no name for it, or
//! `any`. The linker concatenates the sections of objects, so entries come in any order and more
//! than once; the strongest counts.
//!
//! Three more words declare how the grate reads its command line: `composes 2`, that it takes so
//! many `%{ ... %}` (`any` for one or more); `takes places`, that each of its options may be
//! preceded by its position in a file ([`PLACE`]); and `option p policy reads`, that it has an
//! option with a value of this kind ([`Takes`]).
//!
//! `follows` is added by the SDK itself, to learn of clients that are born and that exit. Alone it
//! declares nothing: grates without a manifest (Lind's, and those that choose their calls while
//! they run) may register anything.

use std::collections::{BTreeMap, BTreeSet};

pub use crate::code::takes::{Part, Takes, Use};
use anyhow::{Context, Result, bail, ensure};
use lind_abi::{NR_ANY, syscall, syscall_named};

/// The section's name.
pub const SECTION: &str = "lind.grate";

/// The export of a grate that is its filter (see `grate::filter`).
pub const FILTER: &str = "__lind_filter";

/// The export that returns which entry the filter belongs to.
pub const FILTERED: &str = "__lind_filtered";

/// A larger section is rejected.
pub const MAX_SIZE: usize = 1 << 16;

/// The prefix of a word that gives the position in a policy file of the option after it.
pub const PLACE: &str = "--lind-at=";

/// The declared power of a grate over a call, from the weakest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Role {
    /// Sees it, for the SDK's knowledge of clients only.
    Follows,
    /// Sees it and passes it on.
    Observes,
    /// Passes it on changed, or refuses it.
    Alters,
    /// Answers it itself.
    Answers,
}

impl Role {
    const WORDS: [(&str, Role); 4] = [
        ("follows", Role::Follows),
        ("observes", Role::Observes),
        ("alters", Role::Alters),
        ("answers", Role::Answers),
    ];

    /// The word for it.
    pub fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(_, role)| *role == self).map_or("", |(word, _)| word)
    }
}

/// The declarations of a grate; empty if the module has no manifest.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Manifest {
    calls: BTreeMap<u32, Role>,
    followed: BTreeSet<u32>,
    composes: Option<u32>,
    places: bool,
    options: BTreeSet<Takes>,
}

impl Manifest {
    /// Reads the section.
    ///
    /// # Errors
    /// The section is malformed.
    pub fn parse(section: &[u8]) -> Result<Manifest> {
        ensure!(section.len() <= MAX_SIZE, "the manifest has more than {MAX_SIZE} bytes");
        let mut manifest = Manifest::default();
        let Some((last, entries)) = section.split_last() else { return Ok(manifest) };
        ensure!(*last == 0, "the manifest is cut off");
        for entry in entries.split(|&byte| byte == 0) {
            let entry = str::from_utf8(entry).context("the manifest is not text")?;
            manifest.add(entry)?;
        }
        Ok(manifest)
    }

    fn add(&mut self, entry: &str) -> Result<()> {
        let odd = || format!("the manifest has an entry {entry:?}");
        let (word, call) = entry.split_once(' ').with_context(odd)?;
        match (word, call) {
            ("composes", "any") => {
                self.composes.get_or_insert(0);
                return Ok(());
            }
            ("composes", count) => {
                let count: u32 = count.parse().ok().filter(|count| *count > 0).with_context(odd)?;
                self.composes = self.composes.max(Some(count));
                return Ok(());
            }
            ("takes", "places") => {
                self.places = true;
                return Ok(());
            }
            ("option", takes) => {
                self.options.insert(Takes::parse(takes).with_context(odd)?);
                return Ok(());
            }
            _ => {}
        }
        let Some(&(_, role)) = Role::WORDS.iter().find(|(known, _)| *known == word) else { bail!(odd()) };
        let nr = match call {
            "any" => NR_ANY,
            _ => match syscall_named(call) {
                Some(row) => row.nr,
                None => call.parse().ok().filter(|&nr| nr != NR_ANY).with_context(odd)?,
            },
        };
        if role == Role::Follows {
            self.followed.insert(nr);
        }
        let known = self.calls.entry(nr).or_insert(role);
        *known = role.max(*known);
        Ok(())
    }

    /// Whether the module has a manifest: the grate may then register only the calls that it
    /// declares.
    pub fn declared(&self) -> bool {
        self.calls.values().any(|role| *role > Role::Follows)
    }

    /// Whether a handler for this number may be registered.
    pub fn allows(&self, number: u64) -> bool {
        let known = |nr: u32| self.calls.contains_key(&nr);
        !self.declared() || u32::try_from(number).is_ok_and(known) || self.role_of_any().is_some()
    }

    /// The role that is declared for a call; the entry for [`NR_ANY`] is not considered. None
    /// without a manifest.
    pub fn role(&self, nr: u32) -> Option<Role> {
        self.calls.get(&nr).copied()
    }

    /// Whether the SDK may watch a call to follow clients, whatever else is declared for it.
    pub fn follows(&self, nr: u32) -> bool {
        self.followed.contains(&nr)
    }

    /// The role that is declared for every call without an entry of its own.
    pub fn role_of_any(&self) -> Option<Role> {
        self.calls.get(&NR_ANY).copied()
    }

    /// The number of `%{ ... %}` that a composer takes; 0 is one or more.
    pub fn composes(&self) -> Option<u32> {
        self.composes
    }

    /// Whether options may have [`PLACE`] before them.
    pub fn takes_places(&self) -> bool {
        self.places
    }

    /// The options with a value.
    pub fn options(&self) -> impl Iterator<Item = &Takes> {
        self.options.iter()
    }

    /// Numbers and roles, ascending; [`NR_ANY`] is the last.
    pub fn entries(&self) -> impl Iterator<Item = (u32, Role)> {
        self.calls.iter().map(|(nr, role)| (*nr, *role))
    }

    /// The section, as [`Manifest::parse`] reads it.
    pub(crate) fn section(&self) -> Vec<u8> {
        let line = |(nr, role): (u32, Role)| format!("{} {}\0", role.word(), call_name(nr));
        let weaker = self.followed.iter().map(|nr| (*nr, Role::Follows)).filter(|(nr, role)| self.calls[nr] > *role);
        let lines = self.entries().chain(weaker).map(line);
        let stacks = |count: u32| if count == 0 { "any".to_owned() } else { count.to_string() };
        let composes = self.composes.map(|count| format!("composes {}\0", stacks(count)));
        let places = self.places.then(|| "takes places\0".to_owned());
        let options = self.options.iter().map(|takes| format!("option {takes}\0"));
        lines.chain(composes).chain(places).chain(options).collect::<String>().into_bytes()
    }
}

/// The name of a number in manifests and messages.
pub fn call_name(nr: u32) -> String {
    match nr {
        NR_ANY => "any".to_owned(),
        _ => syscall(nr).map_or_else(|| nr.to_string(), |row| row.name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_role_counts() {
        let manifest = Manifest::parse(b"answers openat\0follows clone\0observes openat\0alters 900\0").unwrap();
        assert_eq!(manifest.role(257), Some(Role::Answers));
        assert_eq!(manifest.role(900), Some(Role::Alters));
        assert!(manifest.declared() && manifest.allows(56) && manifest.allows(900));
        let both = Manifest::parse(b"answers clone\0follows clone\0").unwrap();
        assert!(both.role(56) == Some(Role::Answers) && both.follows(56) && !manifest.follows(257));
        assert_eq!(Manifest::parse(&both.section()).unwrap(), both);
        assert!(!manifest.allows(0) && !manifest.allows(u64::from(NR_ANY)) && !manifest.allows(1 << 32 | 257));
        assert_eq!(Manifest::parse(&manifest.section()).unwrap(), manifest);
    }

    #[test]
    fn without_a_manifest_everything_is_allowed() {
        for section in [&b""[..], b"follows clone\0follows execve\0"] {
            let manifest = Manifest::parse(section).unwrap();
            assert!(!manifest.declared() && manifest.allows(0) && manifest.allows(u64::from(NR_ANY)));
        }
    }

    #[test]
    fn how_a_line_is_read_declares_no_call() {
        let manifest = Manifest::parse(b"composes any\0takes places\0composes 2\0follows clone\0").unwrap();
        assert_eq!((manifest.composes(), manifest.takes_places(), manifest.declared()), (Some(2), true, false));
        assert_eq!(Manifest::parse(&manifest.section()).unwrap(), manifest);
        assert_eq!(Manifest::parse(b"composes any\0").unwrap().composes(), Some(0));
    }

    #[test]
    fn options_are_kept() {
        let section = b"option p policy reads\0option o - writes\0option - log creates,.head\0";
        let manifest = Manifest::parse(section).unwrap();
        assert!(!manifest.declared() && manifest.options().count() == 3);
        assert_eq!(Manifest::parse(&manifest.section()).unwrap(), manifest);
        assert!(Manifest::parse(b"option - - reads\0").is_err() && Manifest::parse(b"option p policy eats\0").is_err());
    }

    #[test]
    fn any_is_every_number() {
        let manifest = Manifest::parse(b"observes any\0").unwrap();
        assert!(
            manifest.declared()
                && manifest.allows(0)
                && manifest.allows(u64::from(NR_ANY))
                && manifest.allows(u64::MAX)
        );
    }

    #[test]
    fn what_is_no_manifest_is_refused() {
        let bad: [&[u8]; 11] = [
            b"composes 0\0",
            b"composes many\0",
            b"takes place\0",
            b"answers openat",
            b"\0",
            b"answers\0",
            b"owns openat\0",
            b"answers nothing\0",
            b"answers 4294967295\0",
            b"\xff \0",
            &[b'a'; MAX_SIZE + 1],
        ];
        for section in bad {
            assert!(Manifest::parse(section).is_err(), "{section:?}");
        }
    }
}
