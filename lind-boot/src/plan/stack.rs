//! `--stack FILE`: reads the grates of a command line, with their options and clamps, from TOML.
//!
//! The file can only have what a command line can: [`steps`] makes the same steps of it. Mistakes
//! are reported with file, line, column and key.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use lind_engine::code::manifest::Manifest;
use serde::Deserialize;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Deserializer, Error, MapAccess, SeqAccess, Visitor};
use toml::Spanned;

use super::checked::Text;
use super::source::Source;
use super::step::{Setting, Step, Value};
use super::words::settings as read_settings;

/// The grate that `clamp` stands for.
const CLAMP: &str = "namespace_grate";

/// A grate of the line; a composer has chains of grates between its `%{` and `%}`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grate {
    /// Its name, as one would type it.
    pub name: String,
    /// FILE:LINE: KEY, for messages.
    pub place: String,
    /// The options behind its name.
    pub options: Vec<Words>,
    /// One chain for each `%{ ... %}`.
    pub stacks: Vec<Vec<Grate>>,
}

/// An option with its value, or several options where only the grate knows where each ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Words {
    /// FILE:LINE: KEY
    pub place: String,
    /// The words, as one would type them.
    pub words: Vec<String>,
}

/// Reads a file.
///
/// # Errors
/// An error FILE:LINE:COLUMN: KEY: MISTAKE.
pub fn read(file: &Path) -> Result<Vec<Grate>> {
    let text = std::fs::read_to_string(file).with_context(|| format!("--stack {}", file.display()))?;
    parse(&file.display().to_string(), &text)
}

/// The grates as steps. `manifest` tells what a grate declares, and whether it takes the places of
/// its options in the file: a setting with the place comes before each option, and one for the
/// grate itself behind all.
///
/// # Errors
/// An option whose value does not have the form that the grate declares.
pub fn steps(chain: &[Grate], manifest: &dyn Fn(&str) -> Option<Manifest>) -> Result<Vec<Step>> {
    let of = |grate: &Grate| {
        let known = manifest(&grate.name).unwrap_or_default();
        let mark = |place: &str| known.takes_places().then(|| Setting::place(place));
        let mut step = Step::new(&grate.name);
        for option in &grate.options {
            step.settings.extend(mark(&option.place));
            let settings = settings(&option.words, &known);
            step.settings.extend(settings.map_err(|wrong| anyhow!("{}: {}: {wrong}", option.place, grate.name))?);
        }
        step.settings.extend(mark(&grate.place));
        step.inside = grate.stacks.iter().map(|stack| steps(stack, manifest)).collect::<Result<_>>()?;
        Ok(step)
    };
    chain.iter().map(of).collect()
}

/// All words of an option. A word that is neither an option nor a value is kept as it is: the grate
/// may know it.
///
/// # Errors
/// A value that does not have the form that the grate declares.
pub fn settings(words: &[String], manifest: &Manifest) -> Result<Vec<Setting>, String> {
    let words: Vec<OsString> = words.iter().map(OsString::from).collect();
    let (mut all, mut at) = (Vec::new(), 0);
    while at < words.len() {
        let (settings, ends) = read_settings(&words, &mut at, manifest)?;
        all.extend(settings);
        if ends {
            all.push(Setting::new("--", Value::Flag));
        } else if let Some(word) = words.get(at) {
            all.push(Setting::new(word.to_string_lossy().into_owned(), Value::Flag));
            at += 1;
        }
    }
    Ok(all)
}

/// Reads the text of a file.
///
/// # Errors
/// The errors of [`read`].
pub fn parse(file: &str, text: &str) -> Result<Vec<Grate>> {
    let source = Source { name: file, text };
    let File { grate } = source.read()?;
    grate.into_iter().map(|entry| resolved(&source, entry)).collect()
}

/// A file with the grates of a line.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    grate: Vec<Spanned<Entry>>,
}

/// A grate or a clamp in a file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: Option<Spanned<Word>>,
    options: Option<Spanned<Options>>,
    clamp: Option<Spanned<Options>>,
    inside: Option<Vec<Spanned<Entry>>>,
    stacks: Option<Spanned<Vec<Vec<Spanned<Entry>>>>>,
}

/// The options of a grate.
enum Options {
    /// Words, as one types them.
    Words(Vec<Word>),
    /// Names without dashes, and values, in the order of the file, which matters to some grates.
    Table(Vec<(String, Spanned<Given>)>),
}

/// The value of an option.
enum Given {
    /// Whether an option without a value is given.
    Flag(bool),
    One(Word),
    /// The option is given once for each.
    Several(Vec<Spanned<Word>>),
}

/// A text or a number.
struct Word(String);

fn resolved(source: &Source<'_>, entry: Spanned<Entry>) -> Result<Grate> {
    let start = entry.span().start;
    let wrong = |what: &str| source.error_at(start, what);
    let Entry { name, options, clamp, inside, stacks } = entry.into_inner();
    let stacks = match (inside, stacks) {
        (Some(_), Some(stacks)) => {
            return Err(source.error_at(stacks.span().start, "`inside` and `stacks` exclude each other"));
        }
        (Some(inside), None) => vec![inside],
        (None, stacks) => stacks.map(Spanned::into_inner).unwrap_or_default(),
    };
    let chain = |chain: Vec<Spanned<Entry>>| chain.into_iter().map(|entry| resolved(source, entry)).collect();
    let stacks = stacks.into_iter().map(chain).collect::<Result<Vec<_>>>()?;
    let (name, options) = match (name, clamp, options) {
        (Some(name), None, options) => (program(source, &name)?, options),
        (None, Some(clamp), None) if stacks.len() == 1 => (CLAMP.to_owned(), Some(clamp)),
        (None, Some(_), _) => return Err(wrong("a clamp needs `inside`, and takes its options in `clamp`")),
        (Some(_), Some(_), _) => return Err(wrong("`name` and `clamp` exclude each other")),
        (None, None, _) => return Err(wrong("must have `name` or `clamp`")),
    };
    let options = options.map(|options| words(source, options)).unwrap_or_default();
    Ok(Grate { name, place: source.line_of(start), options, stacks })
}

fn program(source: &Source<'_>, name: &Spanned<Word>) -> Result<String> {
    let Word(text) = name.get_ref();
    if text.is_empty() || text.starts_with(['-', '%']) {
        return Err(source.error_at(name.span().start, "must be a program's name"));
    }
    Ok(text.clone())
}

/// The options with their places.
fn words(source: &Source<'_>, options: Spanned<Options>) -> Vec<Words> {
    let of = |at: usize, words| Words { place: source.line_of(at), words };
    let start = options.span().start;
    let mut table = match options.into_inner() {
        Options::Words(words) => return vec![of(start, words.into_iter().map(|Word(word)| word).collect())],
        Options::Table(table) => table,
    };
    table.sort_by_key(|(_, value)| value.span().start);
    let mut all = Vec::new();
    for (name, value) in table {
        let dashed = if name.len() == 1 { format!("-{name}") } else { format!("--{name}") };
        let option = |Word(value): Word| match name.len() {
            1 => vec![dashed.clone(), value],
            _ => vec![format!("{dashed}={value}")],
        };
        let at = value.span().start;
        match value.into_inner() {
            Given::Flag(true) => all.push(of(at, vec![dashed])),
            Given::Flag(false) => {}
            Given::One(value) => all.push(of(at, option(value))),
            Given::Several(values) => {
                all.extend(values.into_iter().map(|value| of(value.span().start, option(value.into_inner()))));
            }
        }
    }
    all
}

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Word, D::Error> {
        match Given::deserialize(from)? {
            Given::One(word) => Ok(word),
            _ => Err(D::Error::custom("expected a string or a number")),
        }
    }
}

impl<'de> Deserialize<'de> for Given {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Given, D::Error> {
        from.deserialize_any(Visited)
    }
}

impl<'de> Deserialize<'de> for Options {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Options, D::Error> {
        from.deserialize_any(All)
    }
}

/// Reads the value of an option.
struct Visited;

impl<'de> Visitor<'de> for Visited {
    type Value = Given;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a string, a number, true, or a list of strings and numbers")
    }

    fn visit_bool<E: Error>(self, is: bool) -> Result<Given, E> {
        Ok(Given::Flag(is))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Given, E> {
        if text.contains('\0') { Err(E::custom("has a NUL byte")) } else { Ok(Given::One(Word(text.to_owned()))) }
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Given, E> {
        Ok(Given::One(Word(number.to_string())))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Given, E> {
        Ok(Given::One(Word(number.to_string())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, from: A) -> Result<Given, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(from)).map(Given::Several)
    }
}

/// Reads options.
struct All;

impl<'de> Visitor<'de> for All {
    type Value = Options;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a list of words or a table of options")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, from: A) -> Result<Options, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(from)).map(Options::Words)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Options, A::Error> {
        let mut all = Vec::new();
        while let Some(name) = from.next_key_seed(Text(option_name))? {
            all.push((name, from.next_value()?));
        }
        Ok(Options::Table(all))
    }
}

fn option_name(name: &str) -> Result<(), String> {
    let is_wrong = name.is_empty() || name.starts_with('-') || name.contains(['=', '\0']);
    if is_wrong { Err("must be the name of an option without its dashes".to_owned()) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::super::step;
    use super::*;

    const POLICY: &str = r#"
# The outermost grate first.
[[grate]]
name = "strace_grate"
options = { o = "/log", quiet = true, e = ["open", "close"], summary = false }

[[grate]]
clamp = { prefix = ["/tmp", "/var"], port = 80 }
inside = [
    { name = "tee_grate", stacks = [[{ name = "imfs_grate" }], [{ name = "forward_grate", options = ["--nr", 1] }]] },
]
"#;

    fn line(text: &str, manifest: &dyn Fn(&str) -> Option<Manifest>) -> String {
        let words = step::words(&steps(&parse("f", text).unwrap(), manifest).unwrap());
        words.join(OsStr::new(" ")).into_string().unwrap()
    }

    #[test]
    fn a_file_is_a_line() {
        assert_eq!(
            line(POLICY, &|_| None),
            "strace_grate -o /log --quiet -e open -e close namespace_grate --prefix=/tmp --prefix=/var --port=80 \
             %{ tee_grate %{ imfs_grate %} %{ forward_grate --nr 1 %} %}"
        );
    }

    #[test]
    fn who_understands_it_is_told_where_options_stand() {
        let text = "[[grate]]\nname = \"a\"\noptions = [\"-x\", \"1\"]\n[[grate]]\nname = \"b\"\noptions.y = 2\noptions.zz = [3, 4]\n";
        assert_eq!(
            line(text, &|name| Manifest::parse(b"takes places\0").ok().filter(|_| name == "b")),
            "a -x 1 b --lind-at=f:6: grate[1].options.y -y 2 --lind-at=f:7: grate[1].options.zz[0] --zz=3 \
             --lind-at=f:7: grate[1].options.zz[1] --zz=4 --lind-at=f:4: grate[1]"
        );
    }

    #[test]
    fn mistakes_are_told_with_file_line_and_key() {
        let cases = [
            ("", "f:1:1: missing field `grate`"),
            ("x = 1", "f:1:1: x: unknown key; the keys are grate"),
            ("grate = 3", "f:1:9: grate: invalid type: integer `3`, expected a list"),
            (
                "\n[[grate]]\nnam = \"x\"",
                "f:3:1: grate[0].nam: unknown key; the keys are name, options, clamp, inside, stacks; is name meant?",
            ),
            ("[[grate]]\nname = \"%{\"", "f:2:8: grate[0].name: must be a program's name"),
            ("[[grate]]\nname = [1]", "f:2:8: grate[0].name: expected a string or a number"),
            ("[[grate]]\noptions = []", "f:1:1: grate[0]: must have `name` or `clamp`"),
            (
                "[[grate]]\nclamp = { prefix = \"/\" }",
                "f:1:1: grate[0]: a clamp needs `inside`, and takes its options in `clamp`",
            ),
            (
                "[[grate]]\nname = \"a\"\noptions = { \"--x\" = 1 }",
                "f:3:13: grate[0].options.--x: must be the name of an option without its dashes",
            ),
            ("[[grate]]\nname = \"a\"\noptions.x = [1, \"\\u0000\"]", "f:3:17: grate[0].options.x[1]: has a NUL byte"),
            (
                "[[grate]]\nname = \"a\"\n\ninside = [\n  { name = \"b\" },\n  { },\n]",
                "f:6:3: grate[0].inside[1]: must have `name` or `clamp`",
            ),
            (
                "[[grate]]\nname = \"a\"\nstacks = [1]",
                "f:3:11: grate[0].stacks[0]: invalid type: integer `1`, expected a list",
            ),
            (
                "[[grate]]\nname = \"a\"\ninside = []\nstacks = []",
                "f:4:10: grate[0].stacks: `inside` and `stacks` exclude each other",
            ),
        ];
        for (text, wanted) in cases {
            assert_eq!(parse("f", text).unwrap_err().to_string(), wanted, "{text}");
        }
        let broken = parse("f", "[[grate]]\nname = \"x\n").unwrap_err().to_string();
        assert!(broken.starts_with("f:2:") && broken.contains(": name: "), "{broken}");
    }
}
