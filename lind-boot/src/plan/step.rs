//! Grates of a line as values: the one form in which a policy travels from its file or its options
//! to the grate. Words are made of it last, by [`words`].
//!
//! A line typed by hand becomes such values too ([`super::words`]).

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use lind_engine::code::manifest::{PLACE, Use};

use crate::amount::{Amount, Kind};

/// The prefix of a file inside the root.
pub const INSIDE: &[u8] = b"root:";

/// A grate with its options; a composer has chains of grates inside.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Step {
    /// Its name.
    pub grate: String,
    /// Its options, in order.
    pub settings: Vec<Setting>,
    /// Whether `--` ends the options, so that the word behind them cannot be taken for a value.
    pub ends: bool,
    /// The chains of a composer.
    pub inside: Vec<Vec<Step>>,
    /// Whether the last chain goes on in words that were not read.
    pub is_open: bool,
}

/// An option of a grate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Setting {
    /// Its name with its dashes.
    pub name: Cow<'static, str>,
    /// Its value.
    pub value: Value,
    /// Whether name and value are two words. Grates repeat in messages what was typed.
    pub apart: bool,
}

/// The value of an option.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// The option takes no value.
    Flag,
    /// A text.
    Text(OsString),
    /// An amount, and the part of the value before it. The grate gets a plain number.
    Amount(OsString, Amount),
    /// A file of the host, which is opened for the grate.
    Host(HostFile),
}

/// A file of the host in the value of an option.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostFile {
    /// The part of the value before the file.
    pub before: OsString,
    /// The file.
    pub path: PathBuf,
    /// The part of the value behind it.
    pub behind: OsString,
    /// The use that the grate makes of it.
    pub what: Use,
    /// Suffixes that name further files beside it.
    pub beside: Vec<String>,
}

impl Step {
    /// A grate without options.
    pub fn new(grate: &str) -> Step {
        Step { grate: grate.to_owned(), ..Step::default() }
    }

    /// The same grate with one more option.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: Value) -> Step {
        self.settings.push(Setting::new(name, value));
        self
    }

    /// Replaces the amounts of its options by the numbers that the grate gets.
    pub fn make_plain(&mut self) {
        self.settings.iter_mut().for_each(|setting| setting.value.make_plain());
    }

    fn add_words(&self, line: &mut Vec<OsString>) {
        line.push(self.grate.clone().into());
        self.settings.iter().for_each(|setting| setting.add_words(line));
        line.extend(self.ends.then(|| "--".into()));
        for (number, chain) in self.inside.iter().enumerate() {
            line.push("%{".into());
            chain.iter().for_each(|step| step.add_words(line));
            let goes_on = self.is_open && number + 1 == self.inside.len();
            line.extend((!goes_on).then(|| "%}".into()));
        }
    }
}

impl Setting {
    /// An option as lind-boot itself writes it.
    pub fn new(name: impl Into<Cow<'static, str>>, value: Value) -> Setting {
        Setting { name: name.into(), value, apart: false }
    }

    /// A setting with the place in a file of the option that follows it, for messages of the grate.
    pub fn place(place: &str) -> Setting {
        Setting::new(PLACE.trim_end_matches('='), Value::text(place))
    }

    /// The place that it names, if it is one.
    pub fn as_place(&self) -> Option<&OsStr> {
        match &self.value {
            Value::Text(place) if self.name == PLACE.trim_end_matches('=') => Some(place),
            _ => None,
        }
    }

    fn add_words(&self, line: &mut Vec<OsString>) {
        let Some(value) = self.value.word() else { return line.push(self.name.to_string().into()) };
        let name: &OsStr = self.name.as_ref().as_ref();
        if self.apart {
            line.extend([name.to_owned(), value]);
        } else {
            line.push(joined([name, if self.name.starts_with("--") { "=" } else { "" }.as_ref(), &value]));
        }
    }
}

impl Value {
    /// A text.
    pub fn text(text: impl Into<OsString>) -> Value {
        Value::Text(text.into())
    }

    /// A file of the host that is the whole value.
    pub fn host(path: impl Into<PathBuf>, what: Use) -> Value {
        let (before, behind) = Default::default();
        Value::Host(HostFile { before, path: path.into(), behind, what, beside: Vec::new() })
    }

    /// The value as a word. None for an option without one.
    pub fn word(&self) -> Option<OsString> {
        match self {
            Value::Flag => None,
            Value::Text(text) => Some(text.clone()),
            Value::Amount(before, amount) => Some(joined([before, amount.to_string().as_ref()])),
            Value::Host(file) => Some(joined([&file.before, file.path.as_os_str(), &file.behind])),
        }
    }

    /// The uses that the grate may declare for it. None if it may declare any.
    pub fn uses(&self) -> Option<Vec<Use>> {
        match self {
            Value::Host(file) => Some(vec![file.what]),
            Value::Amount(_, amount) if amount.kind == Kind::Bytes => Some(vec![Use::Bytes, Use::Limit]),
            Value::Amount(_, amount) if amount.kind == Kind::Time => Some(vec![Use::Time, Use::Limit]),
            _ => None,
        }
    }

    fn make_plain(&mut self) {
        if let Value::Amount(before, amount) = self {
            *self = Value::Text(joined([before, amount.number.to_string().as_ref()]));
        }
    }
}

impl HostFile {
    /// Whether it is a file inside the root.
    pub fn is_inside(&self) -> bool {
        self.before.as_bytes().ends_with(INSIDE)
    }
}

/// The parts of a word, joined.
pub fn joined<const N: usize>(parts: [&OsStr; N]) -> OsString {
    parts.iter().fold(OsString::new(), |mut word, part| {
        word.push(part);
        word
    })
}

/// A chain of grates as words of a command line.
pub fn words(chain: &[Step]) -> Vec<OsString> {
    let mut line = Vec::new();
    chain.iter().for_each(|step| step.add_words(&mut line));
    line
}
