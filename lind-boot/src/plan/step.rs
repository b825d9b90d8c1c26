//! Grates of a line as values: the one form in which a policy travels from its file or its options
//! to the grate. Words are made of it last, by [`words`].
//!
//! A line typed by hand becomes such values too ([`read`]): the manifest of a grate says which of
//! its options take a value, and which values are amounts or name files of the host.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use anyhow::{Result, anyhow};
use lind_engine::code::manifest::{Manifest, PLACE, Part, Takes, Use};
use lind_kernel::text::shown;

use crate::amount::{Amount, Kind};

/// The prefix of a file inside the root.
const INSIDE: &[u8] = b"root:";

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

    /// The place in a file of the option behind it, for messages of the grate.
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

    /// The value of an option that a grate declares.
    ///
    /// # Errors
    /// The form that it must have.
    fn of(takes: &Takes, text: &[u8]) -> Result<Value, String> {
        let equals = text.iter().position(|&byte| byte == b'=');
        let (start, end) = match (takes.part, equals) {
            (Part::Before, Some(equals)) => (0, equals),
            (Part::Behind, Some(equals)) => (equals + 1, text.len()),
            _ => (0, text.len()),
        };
        let kind = match takes.what {
            Use::Value => return Ok(Value::Text(os(text))),
            Use::Bytes => Kind::Bytes,
            Use::Time => Kind::Time,
            // Only the grate knows the names of all limits.
            Use::Limit => match str::from_utf8(&text[..start]) {
                Ok(limit) if start > 0 => Kind::of(limit.trim_end_matches('=')),
                _ => return Ok(Value::Text(os(text))),
            },
            _ => return Ok(Value::file(takes, text, (start, end))),
        };
        let amount = str::from_utf8(&text[start..end]).map_err(|_| "must be text".to_owned())?;
        Ok(Value::Amount(os(&text[..start]), kind.parse(amount)?))
    }

    /// The value of an option that names a file, which is the part of the text from `start` to
    /// `end`.
    fn file(takes: &Takes, text: &[u8], (start, end): (usize, usize)) -> Value {
        let is_missing = takes.part != Part::Whole && (start, end) == (0, text.len());
        let is_inside = text[start..end].starts_with(INSIDE);
        if is_missing || is_inside && takes.what != Use::Toml {
            return Value::Text(os(text));
        }
        // lind-boot itself reads settings inside the root.
        let start = if is_inside { start + INSIDE.len() } else { start };
        Value::Host(HostFile {
            before: os(&text[..start]),
            path: os(&text[start..end]).into(),
            behind: os(&text[end..]),
            what: takes.what,
            beside: takes.beside.clone(),
        })
    }
}

impl HostFile {
    /// Whether it is a file inside the root.
    pub fn is_inside(&self) -> bool {
        self.before.as_bytes().ends_with(INSIDE)
    }
}

fn os(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
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

/// The grates that the names of a line can mean.
pub trait Grates {
    /// Whether a grate has this name.
    fn has(&self, name: &str) -> bool;
    /// Its manifest. None if the grate cannot be run: that is reported when it is started.
    fn manifest(&self, name: &str) -> Option<Manifest>;
}

/// Reads the grates of a line, and returns how many words they are. It ends at the first word that
/// is not a grate: the words from there on belong to a program.
///
/// # Errors
/// An option whose value does not have the form that the grate declares.
pub fn read(words: &[OsString], grates: &dyn Grates) -> Result<(Vec<Step>, usize)> {
    let mut at = 0;
    let (steps, _) = chain(words, &mut at, false, grates)?;
    Ok((steps, at))
}

/// Reads a chain, and returns whether it has ended with the `%}` that closes it.
fn chain(words: &[OsString], at: &mut usize, is_inside: bool, grates: &dyn Grates) -> Result<(Vec<Step>, bool)> {
    let mut steps = Vec::new();
    while let Some(word) = words.get(*at) {
        if is_inside && word == "%}" {
            *at += 1;
            return Ok((steps, true));
        }
        let Some(name) = word.to_str().filter(|name| grates.has(name)) else { break };
        *at += 1;
        let mut step = Step::new(name);
        if is_option(words.get(*at))
            && let Some(manifest) = grates.manifest(name)
        {
            (step.settings, step.ends) = settings(words, at, &manifest).map_err(|wrong| anyhow!("{name}: {wrong}"))?;
        }
        while words.get(*at).is_some_and(|word| word == "%{") && !step.is_open {
            *at += 1;
            let (inside, is_closed) = chain(words, at, true, grates)?;
            step.inside.push(inside);
            step.is_open = !is_closed;
        }
        let is_open = step.is_open;
        steps.push(step);
        if is_open {
            break;
        }
    }
    Ok((steps, false))
}

fn is_option(word: Option<&OsString>) -> bool {
    word.is_some_and(|word| word.len() > 1 && word.as_bytes()[0] == b'-')
}

/// Reads the options from `at` on, and returns whether `--` ends them.
///
/// # Errors
/// An option whose value does not have the form that the grate declares.
pub fn settings(words: &[OsString], at: &mut usize, manifest: &Manifest) -> Result<(Vec<Setting>, bool), String> {
    let mut settings = Vec::new();
    while is_option(words.get(*at)) {
        let word = words[*at].as_bytes();
        *at += 1;
        if word == b"--" {
            return Ok((settings, true));
        }
        if let Some(place) = word.strip_prefix(PLACE.as_bytes()) {
            settings.push(Setting::place(&String::from_utf8_lossy(place)));
            continue;
        }
        let of = |takes, text: &[u8]| {
            Value::of(takes, text).map_err(|wrong| format!("{}: '{}': {wrong}", shown(word), shown(text)))
        };
        let (name, value, apart) = match value_of(manifest, word) {
            Some((takes, Some(from))) => (name_of(word, from), of(takes, &word[from..])?, false),
            Some((takes, None)) if *at < words.len() => {
                *at += 1;
                (os(word), of(takes, words[*at - 1].as_bytes())?, true)
            }
            _ => (os(word), Value::Flag, false),
        };
        // A name in another encoding is not an option of any grate, which says so.
        let name = name.into_string().unwrap_or_else(|name| name.to_string_lossy().into_owned());
        settings.push(Setting { name: name.into(), value, apart });
    }
    Ok((settings, false))
}

/// The part of a word that is an option's name, if the value begins at byte `from`.
fn name_of(word: &[u8], from: usize) -> OsString {
    os(word[..from].strip_suffix(b"=").filter(|name| name.starts_with(b"--")).unwrap_or(&word[..from]))
}

/// The option of this name, with its dashes, as a grate declares it.
pub fn declared<'m>(manifest: &'m Manifest, name: &str) -> Option<&'m Takes> {
    value_of(manifest, name.as_bytes()).filter(|(_, from)| from.is_none()).map(|(takes, _)| takes)
}

/// The option with a value that a word has, and where in the word the value begins, if it is not
/// the next word.
fn value_of<'m>(manifest: &'m Manifest, word: &[u8]) -> Option<(&'m Takes, Option<usize>)> {
    if let Some(long) = word.strip_prefix(b"--") {
        let equals = long.iter().position(|&byte| byte == b'=');
        let name = &long[..equals.unwrap_or(long.len())];
        let takes =
            manifest.options().find(|takes| takes.name.as_ref().is_some_and(|known| known.as_bytes() == name))?;
        return Some((takes, equals.map(|equals| equals + 3)));
    }
    // -abc is -a -b -c, up to the first that takes a value.
    word.iter().enumerate().skip(1).find_map(|(at, &letter)| {
        let takes = manifest.options().find(|takes| takes.letter == Some(char::from(letter)))?;
        Some((takes, Some(at + 1).filter(|&from| from < word.len())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A grate with options that take files, and a composer.
    struct Two;

    impl Grates for Two {
        fn has(&self, name: &str) -> bool {
            ["log_grate", "clamp_grate"].contains(&name)
        }

        fn manifest(&self, name: &str) -> Option<Manifest> {
            let options: &[u8] = match name {
                "log_grate" => {
                    b"option p policy reads\0option o - writes\0option - preload reads=\0option n nr value\0\
                      option m memory bytes\0option - cpu time\0option - bytes =bytes\0option - each =limit\0\
                      option - rules toml\0"
                }
                _ => b"option - prefix value\0composes 1\0",
            };
            Manifest::parse(options).ok()
        }
    }

    fn read_all(line: &str) -> (Vec<Step>, Vec<OsString>) {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let (chain, count) = read(&words, &Two).unwrap();
        (chain, words[count..].to_vec())
    }

    fn host(value: &Value) -> Option<(String, Use)> {
        match value {
            Value::Host(file) => Some((file.path.display().to_string(), file.what)),
            _ => None,
        }
    }

    #[test]
    fn values_are_where_grates_look_for_them() {
        let found = |line: &str| {
            let (chain, rest) = read_all(&format!("log_grate {line}"));
            let last = chain[0].settings.last().unwrap();
            (last.name.to_string(), last.value.clone(), rest.len())
        };
        let reads = |path: &str| Some((path.to_owned(), Use::Reads));
        for (line, name) in [
            ("--policy x", "--policy"),
            ("--policy=x", "--policy"),
            ("-qp x", "-qp"),
            ("-qpx", "-qp"),
            ("-n 3 -p x", "-p"),
        ] {
            let (found, value, rest) = found(line);
            assert_eq!((&*found, host(&value), rest), (name, reads("x"), 0), "{line}");
        }
        assert_eq!(host(&found("-ox").1), Some(("x".to_owned(), Use::Writes)));
        assert_eq!(found("-q app"), ("-q".into(), Value::Flag, 1));
        assert_eq!(found("--quiet=p"), ("--quiet=p".into(), Value::Flag, 0));
        assert_eq!(found("--policy root:/x").1, Value::text("root:/x"));
        assert_eq!(found("--preload x").1, Value::text("x"));
        let Value::Host(file) = found("--preload=a=/b=c").1 else { panic!() };
        assert_eq!((file.before, file.path, file.behind), ("".into(), "a".into(), "=/b=c".into()));
    }

    #[test]
    fn a_line_is_written_as_it_was_read() {
        for line in [
            "log_grate --policy x -n 3 app -p y",
            "log_grate --policy=x -- log_grate -qof app",
            "clamp_grate --prefix /t %{ log_grate -o f %} app",
            "clamp_grate --prefix /t %{ log_grate -o f ./own_grate %} app",
            "clamp_grate %{ clamp_grate %{ log_grate",
            "log_grate --lind-at=f:1: --policy=x --lind-at=f:2: app",
            "log_grate %} app",
            "app log_grate",
        ] {
            let (chain, rest) = read_all(line);
            let written = [words(&chain), rest].concat().join(OsStr::new(" "));
            assert_eq!(written, line);
        }
        let (chain, rest) = read_all("clamp_grate --prefix /t %{ log_grate -o f ./own_grate -o f %} app");
        assert_eq!((chain[0].inside[0].len(), chain[0].is_open, rest.len()), (1, true, 5));
        assert!(host(&chain[0].inside[0][0].settings[0].value).is_some());
    }

    #[test]
    fn values_may_have_any_bytes() {
        let odd = OsStr::from_bytes(b"/\xff");
        let step = Step::new("log_grate").with("--policy", Value::host(odd, Use::Reads)).with("--nr", Value::text("3"));
        assert_eq!(words(&[step])[1..], [os(b"--policy=/\xff"), "--nr=3".into()]);
    }

    #[test]
    fn amounts_are_plain_for_grates() {
        for (typed, shown, plain) in [
            ("-m 1G", "-m 1G", "-m 1073741824"),
            ("-m1048576", "-m1M", "-m1048576"),
            ("--cpu=1.5s", "--cpu=1500ms", "--cpu=1500000000"),
            ("--bytes 64k", "--bytes 64K", "--bytes 65536"),
            ("--bytes=file=1M", "--bytes=file=1M", "--bytes=file=1048576"),
            ("--each wall=2m", "--each wall=2m", "--each wall=120000000000"),
            ("--each files=20", "--each files=20", "--each files=20"),
            ("--each memory", "--each memory", "--each memory"),
        ] {
            let (mut chain, _) = read_all(&format!("log_grate {typed} app"));
            let written = |chain: &[Step]| words(chain)[1..].join(OsStr::new(" "));
            assert_eq!(written(&chain), shown);
            chain[0].make_plain();
            assert_eq!(written(&chain), plain);
        }
        for (typed, wrong) in [
            ("-m 1Q", "log_grate: -m: '1Q': must be a size such as 64M, 1.5G"),
            ("--cpu=1M", "log_grate: --cpu=1M: '1M': must be a time such as 500ms, 10s, 2m"),
            ("--each memory=x", "log_grate: --each: 'memory=x': must be a size such as 64M, 1.5G"),
            ("--bytes=\u{1b}", "log_grate: --bytes=\\x1b: '\\x1b': must be a size such as 64M, 1.5G"),
        ] {
            let line: Vec<_> = ["log_grate"].into_iter().chain(typed.split(' ')).map(OsString::from).collect();
            assert_eq!(read(&line, &Two).unwrap_err().to_string(), wrong);
        }
    }

    #[test]
    fn settings_in_the_root_are_read_too() {
        let (chain, _) = read_all("log_grate --rules root:/x.toml app");
        let Value::Host(file) = &chain[0].settings[0].value else { panic!() };
        assert!(file.is_inside() && file.path == std::path::Path::new("/x.toml"));
        assert_eq!(words(&chain)[1..], ["--rules", "root:/x.toml"]);
    }
}
