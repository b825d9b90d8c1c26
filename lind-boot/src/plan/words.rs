//! Words of a line as steps: the one reader of what people type. The manifest of a grate says which
//! of its options take a value, and which values are amounts or name files of the host.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use anyhow::{Result, anyhow};
use lind_engine::code::manifest::{Manifest, PLACE, Part, Takes, Use};
use lind_kernel::text::shown;

use super::step::{HostFile, INSIDE, Setting, Step, Value};
use crate::amount::Kind;

/// The kinds of things that a word in the place of a grate names.
pub enum Found {
    /// A grate.
    Grate,
    /// A program.
    Program,
    /// Neither.
    Nothing,
}

/// The grates and programs that the words of a line can name.
pub trait Names {
    /// Finds the thing that a word names.
    ///
    /// # Errors
    /// A file that cannot be read.
    fn find(&self, word: &OsStr) -> Result<Found>;
    /// The manifest of a grate. None if it cannot be run: that is reported when it is started.
    fn manifest(&self, grate: &str) -> Option<Manifest>;
}

/// Reads the grates of a line, and returns how many words they are. It ends at the first word that
/// does not name a grate: the words from there on belong to a program.
///
/// # Errors
/// An option whose value does not have the form that the grate declares.
pub fn read(words: &[OsString], names: &dyn Names) -> Result<(Vec<Step>, usize)> {
    let mut line = Line { words, at: 0, names };
    let (steps, _) = line.chain(false)?;
    Ok((steps, line.at))
}

/// A line that is read.
struct Line<'a> {
    words: &'a [OsString],
    /// The words that were read.
    at: usize,
    names: &'a dyn Names,
}

impl Line<'_> {
    fn next(&self) -> Option<&OsStr> {
        self.words.get(self.at).map(OsString::as_os_str)
    }

    /// Reads a chain, and returns whether it has ended with the `%}` that closes it.
    fn chain(&mut self, is_inside: bool) -> Result<(Vec<Step>, bool)> {
        let mut steps = Vec::new();
        while let Some(word) = self.next() {
            if is_inside && word == "%}" {
                self.at += 1;
                return Ok((steps, true));
            }
            let Found::Grate = self.names.find(word)? else { break };
            let step = self.step(word.to_string_lossy().into_owned())?;
            let is_open = step.is_open;
            steps.push(step);
            if is_open {
                break;
            }
        }
        Ok((steps, false))
    }

    fn step(&mut self, grate: String) -> Result<Step> {
        self.at += 1;
        let mut step = Step { grate, ..Step::default() };
        if is_option(self.words.get(self.at))
            && let Some(manifest) = self.names.manifest(&step.grate)
        {
            self.options(&mut step, &manifest)?;
        }
        while self.next().is_some_and(|word| word == "%{") && !step.is_open {
            self.at += 1;
            let (inside, is_closed) = self.chain(true)?;
            step.inside.push(inside);
            step.is_open = !is_closed;
        }
        Ok(step)
    }

    /// Reads the options of a grate. A word that names nothing belongs to the option before it,
    /// since not all grates declare which options take a value.
    fn options(&mut self, step: &mut Step, manifest: &Manifest) -> Result<()> {
        loop {
            let read = settings(self.words, &mut self.at, manifest);
            let (settings, ends) = read.map_err(|wrong| anyhow!("{}: {wrong}", step.grate))?;
            step.settings.extend(settings);
            step.ends = ends;
            let Some(word) = self.next().filter(|word| !ends && *word != "%{" && *word != "%}") else { break };
            if !matches!(self.names.find(word)?, Found::Nothing) {
                break;
            }
            step.settings.push(Setting::new(word.to_string_lossy().into_owned(), Value::Flag));
            self.at += 1;
        }
        Ok(())
    }
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
            value(takes, text).map_err(|wrong| format!("{}: '{}': {wrong}", shown(word), shown(text)))
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

/// The value of an option that a grate declares.
///
/// # Errors
/// The form that it must have.
fn value(takes: &Takes, text: &[u8]) -> Result<Value, String> {
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
        _ => return Ok(file(takes, text, (start, end))),
    };
    let amount = str::from_utf8(&text[start..end]).map_err(|_| "must be text".to_owned())?;
    Ok(Value::Amount(os(&text[..start]), kind.parse(amount)?))
}

/// The value of an option that names a file, which is the part of the text from `start` to `end`.
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

fn os(bytes: &[u8]) -> OsString {
    OsString::from_vec(bytes.to_vec())
}

#[cfg(test)]
mod tests {
    use super::super::step::words;
    use super::*;

    /// A grate with options that take files, and a composer.
    struct Two;

    impl Names for Two {
        fn find(&self, word: &OsStr) -> Result<Found> {
            Ok(match word.to_str() {
                Some("nothing") => Found::Nothing,
                Some("log_grate" | "clamp_grate") => Found::Grate,
                _ => Found::Program,
            })
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
            "log_grate -x nothing -y nothing nothing log_grate -- nothing",
        ] {
            let (chain, rest) = read_all(line);
            let written = [words(&chain), rest].concat().join(OsStr::new(" "));
            assert_eq!(written, line);
        }
        let (chain, rest) = read_all("clamp_grate --prefix /t %{ log_grate -o f ./own_grate -o f %} app");
        assert_eq!((chain[0].inside[0].len(), chain[0].is_open, rest.len()), (1, true, 5));
        assert!(host(&chain[0].inside[0][0].settings[0].value).is_some());
        let (chain, rest) = read_all("log_grate -x nothing -n nothing -- nothing");
        assert_eq!((chain[0].settings.len(), rest.len()), (3, 1));
        assert_eq!(read_all("log_grate nothing").1.len(), 1);
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
            ("--bytes=\u{1b}", "log_grate: --bytes=\\u{1b}: '\\u{1b}': must be a size such as 64M, 1.5G"),
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
