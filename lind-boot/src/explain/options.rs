//! Options of the grates that are known here, read as they read them.

use std::collections::BTreeSet;

use anyhow::{Result, bail};
use lind_abi::{Kind, MISSING, SYSCALLS, Syscall};

/// An option: its letter and its name, as far as it has them, and whether it takes a value.
pub type Spec = (&'static str, &'static str, bool);

/// An option that was given: its name, or its letter if it has none, and its value.
pub type Given = (&'static str, String);

/// Reads the words between a grate's name and what comes after its options.
///
/// # Errors
/// What the grate would say.
pub fn read(grate: &str, specs: &[Spec], words: &[String]) -> Result<Vec<Given>> {
    let mut given = Vec::new();
    let mut words = words.iter();
    let name = |&(letter, name, _): &Spec| if name.is_empty() { letter } else { name };
    while let Some(word) = words.next() {
        let (spec, value) = if let Some(long) = word.strip_prefix("--") {
            let (long, value) = long.split_once('=').map_or((long, None), |(long, value)| (long, Some(value)));
            (specs.iter().find(|(_, name, _)| *name == long), value)
        } else {
            let letters = word.strip_prefix('-').unwrap_or_default();
            let mut rest = letters.chars();
            let mut spec = None;
            // -abc is -a -b -c, up to the first that takes a value.
            while let Some(letter) = rest.next() {
                spec = specs.iter().find(|(known, ..)| known.chars().eq([letter]));
                match spec {
                    Some(spec) if !spec.2 && !rest.as_str().is_empty() => given.push((name(spec), String::new())),
                    _ => break,
                }
            }
            (spec, Some(rest.as_str()).filter(|value| !value.is_empty()))
        };
        let Some(spec) = spec else { bail!("{grate}: unknown option '{word}'; {grate} --help lists them") };
        let value = match (spec.2, value) {
            (false, None) => String::new(),
            (false, Some(_)) => bail!("{grate}: {word}: takes no value"),
            (true, Some(value)) => value.to_owned(),
            (true, None) => words.next().cloned().ok_or_else(|| anyhow::anyhow!("{grate}: {word} needs a value"))?,
        };
        given.push((name(spec), value));
    }
    Ok(given)
}

/// How many words behind a grate's name are its options. A `--` that ends them is not among these.
pub fn count(specs: &[Spec], words: &[String]) -> usize {
    let mut at = 0;
    while let Some(word) = words.get(at).filter(|word| word.len() > 1 && word.starts_with('-')) {
        if word == "--" {
            break;
        }
        at += 1;
        let takes_next = if let Some(long) = word.strip_prefix("--") {
            specs.iter().any(|(_, name, takes)| *takes && *name == long)
        } else {
            let spec = |letter: char| specs.iter().find(move |(known, ..)| known.chars().eq([letter]));
            let last = word.len() - 1;
            let takes = word.char_indices().skip(1).find(|(_, letter)| spec(*letter).is_some_and(|spec| spec.2));
            takes.is_some_and(|(place, _)| place == last)
        };
        at += usize::from(takes_next);
    }
    at.min(words.len())
}

/// A set of calls as options name it: names, numbers, classes; `!` before takes them away, from all if there was nothing before.
#[derive(Clone, Default)]
pub struct Calls(Option<BTreeSet<u32>>);

impl Calls {
    /// Whether a call is in it. All are if there is none.
    pub fn has(&self, nr: u32) -> bool {
        self.0.as_ref().is_none_or(|calls| calls.contains(&nr))
    }

    /// Whether anything was named.
    pub fn chosen(&self) -> bool {
        self.0.is_some()
    }

    /// Adds one call.
    pub fn add(&mut self, nr: u32) {
        self.0.get_or_insert_default().insert(nr);
    }

    /// Adds or takes away what a list names. `class` says whether a word names a class, and whether a call is in it.
    ///
    /// # Errors
    /// The word that names nothing.
    pub fn change(&mut self, list: &str, class: &dyn Fn(&str, &Syscall) -> bool) -> Result<()> {
        let (list, adds) = list.strip_prefix('!').map_or((list, true), |list| (list, false));
        let all = || all_calls().map(|row| row.nr).collect();
        let calls = self.0.get_or_insert_with(|| if adds { BTreeSet::new() } else { all() });
        for word in list.split([',', ' ', '\t']).filter(|word| !word.is_empty()) {
            let number = word.parse().ok();
            let named = |row: &&Syscall| Some(row.nr) == number || row.name == word || class(word, row);
            let meant: Vec<_> = all_calls().filter(named).map(|row| row.nr).chain(number).collect();
            if meant.is_empty() {
                bail!("no such system call or class: {word}");
            }
            for nr in meant {
                if adds {
                    calls.insert(nr)
                } else {
                    calls.remove(&nr)
                };
            }
        }
        Ok(())
    }
}

/// Every call that has a name.
pub fn all_calls() -> impl Iterator<Item = &'static Syscall> {
    SYSCALLS.iter().chain(MISSING)
}

/// Whether a call takes a path.
pub fn takes_path(row: &Syscall) -> bool {
    row.args.iter().any(|(_, kind)| matches!(kind, Kind::Path))
}

/// Whether a call takes an address to read.
pub fn takes_address(row: &Syscall) -> bool {
    row.args.iter().any(|(_, kind)| matches!(kind, Kind::In(layout) if layout.name == "sockaddr"))
}

/// How many descriptors it takes, those that paths start from aside.
pub fn descriptors(row: &Syscall) -> usize {
    row.args.iter().filter(|(_, kind)| matches!(kind, Kind::Fd)).count()
}

/// Whether it makes a descriptor.
pub fn makes_descriptor(row: &Syscall) -> bool {
    matches!(row.ret, Kind::Fd)
}

/// The classes that grates have in common, without their `%`.
pub fn in_class(class: &str, row: &Syscall) -> bool {
    match class {
        "file" => takes_path(row),
        "desc" => row.args.iter().any(|(_, kind)| matches!(kind, Kind::Fd | Kind::DirFd)) || makes_descriptor(row),
        "network" => row.area == "net",
        _ => row.area == class,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPECS: [Spec; 3] = [("p", "prefix", true), ("q", "quiet", false), ("", "by-text", false)];

    fn given(words: &[&str]) -> Result<Vec<Given>> {
        read("g", &SPECS, &words.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn options_are_read_as_grates_read_them() {
        let wanted = [("prefix", "/a"), ("prefix", "/b"), ("quiet", ""), ("prefix", "c"), ("by-text", "")];
        let wanted = wanted.map(|(name, value)| (name, value.to_owned()));
        assert_eq!(given(&["--prefix", "/a", "--prefix=/b", "-qp", "c", "--by-text"]).unwrap(), wanted);
        for wrong in [&["--prefx=1"][..], &["-x"], &["--prefix"], &["--quiet=1"]] {
            assert!(given(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn options_end_where_grates_end_them() {
        let count = |words: &[&str]| count(&SPECS, &words.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!([count(&["--prefix", "a", "b"]), count(&["--prefix=a", "b"]), count(&["-qp", "a", "b"])], [2, 1, 2]);
        assert_eq!(
            [count(&["-pa", "b"]), count(&["-q", "--", "-q"]), count(&["-"]), count(&["-p", "--"])],
            [1, 1, 0, 2]
        );
    }

    #[test]
    fn lists_name_calls() {
        let number = |name: &str| lind_abi::syscall_named(name).unwrap().nr;
        let class = |word: &str, row: &Syscall| word.strip_prefix('%').is_some_and(|class| in_class(class, row));
        let mut calls = Calls::default();
        assert!(calls.has(number("read")));
        calls.change("read,%network", &class).unwrap();
        assert!(calls.has(number("read")) && calls.has(number("connect")) && !calls.has(number("write")));
        calls.change("!connect", &class).unwrap();
        assert!(!calls.has(number("connect")) && calls.has(number("bind")));
        let mut others = Calls::default();
        others.change("!read", &class).unwrap();
        assert!(!others.has(number("read")) && others.has(number("write")));
        assert!(calls.change("opem", &class).is_err());
    }
}
