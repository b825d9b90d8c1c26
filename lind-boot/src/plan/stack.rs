//! `--stack FILE`: reads the grates of a command line, with their options and clamps, from TOML.
//!
//! The file can only have what a command line can: [`steps`] makes the same steps of it. Mistakes
//! are reported with file, line and key.

use std::ffi::OsString;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use lind_engine::code::manifest::Manifest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::step::{self, Setting, Step, Value};

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
/// An error FILE:LINE: KEY: MISTAKE.
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
        let (settings, ends) = step::settings(&words, &mut at, manifest)?;
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

fn parse(file: &str, text: &str) -> Result<Vec<Grate>> {
    let source = Source { file, text };
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        source.error(at, source.key_of_line(at), error.message())
    })?;
    let mut grates = None;
    for (key, value) in table.get_ref() {
        match key.get_ref().as_ref() {
            "grate" => grates = Some(source.chain("grate", value)?),
            other => return Err(source.error(key.span().start, other, "unknown key; the only key here is `grate`")),
        }
    }
    grates.ok_or_else(|| anyhow!("{file}:1: grate: missing; expected at least one [[grate]]"))
}

/// The text of the file, for errors.
struct Source<'a> {
    file: &'a str,
    text: &'a str,
}

impl Source<'_> {
    fn error(&self, at: usize, key: &str, what: &str) -> anyhow::Error {
        anyhow!("{}: {what}", self.place(at, key))
    }

    fn place(&self, at: usize, key: &str) -> String {
        let line = self.text.bytes().take(at).filter(|&byte| byte == b'\n').count() + 1;
        format!("{}:{line}: {key}", self.file)
    }

    /// The text before the `=` in the line of a syntax error.
    fn key_of_line(&self, at: usize) -> &str {
        let at = at.min(self.text.len());
        let start = self.text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1);
        let line = self.text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
        line.split('=').next().unwrap_or_default().trim()
    }

    fn chain(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<Vec<Grate>> {
        let DeValue::Array(entries) = value.get_ref() else {
            return Err(self.error(value.span().start, key, "must be an array of grates"));
        };
        entries.iter().enumerate().map(|(at, entry)| self.grate(&format!("{key}[{at}]"), entry)).collect()
    }

    fn grate(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<Grate> {
        let start = value.span().start;
        let place = self.place(start, key);
        let DeValue::Table(table) = value.get_ref() else {
            return Err(self.error(start, key, "must be a table with a name"));
        };
        let (mut name, mut options, mut stacks, mut clamp) = (None, Vec::new(), None, None);
        for (word, value) in table {
            let key = format!("{key}.{}", word.get_ref());
            match word.get_ref().as_ref() {
                "name" => name = Some(self.name(&key, value)?),
                "options" => options = self.options(&key, value)?,
                "clamp" => clamp = Some(self.options(&key, value)?),
                "inside" if stacks.is_none() => stacks = Some(vec![self.chain(&key, value)?]),
                "stacks" if stacks.is_none() => stacks = Some(self.stacks(&key, value)?),
                "inside" | "stacks" => {
                    return Err(self.error(word.span().start, &key, "`inside` and `stacks` exclude each other"));
                }
                _ => {
                    let known = "unknown key; the keys are name, options, clamp, inside and stacks";
                    return Err(self.error(word.span().start, &key, known));
                }
            }
        }
        let stacks = stacks.unwrap_or_default();
        match (name, clamp) {
            (Some(name), None) => Ok(Grate { name, place, options, stacks }),
            (None, Some(clamp)) if stacks.len() == 1 && options.is_empty() => {
                Ok(Grate { name: CLAMP.to_owned(), place, options: clamp, stacks })
            }
            (None, Some(_)) => Err(self.error(start, key, "a clamp needs `inside`, and takes its options in `clamp`")),
            (Some(_), Some(_)) => Err(self.error(start, key, "`name` and `clamp` exclude each other")),
            (None, None) => Err(self.error(start, key, "must have `name` or `clamp`")),
        }
    }

    fn stacks(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<Vec<Vec<Grate>>> {
        let DeValue::Array(stacks) = value.get_ref() else {
            return Err(self.error(value.span().start, key, "must be an array of arrays of grates"));
        };
        stacks.iter().enumerate().map(|(at, stack)| self.chain(&format!("{key}[{at}]"), stack)).collect()
    }

    fn name(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<String> {
        let name = self.word(key, value)?;
        if name.is_empty() || name.starts_with('-') || name.starts_with('%') {
            return Err(self.error(value.span().start, key, "must be a program's name"));
        }
        Ok(name)
    }

    /// Reads the options: an array of words, or a table whose keys are option names without dashes.
    fn options(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<Vec<Words>> {
        match value.get_ref() {
            DeValue::Array(words) => {
                let word = |(at, word)| self.word(&format!("{key}[{at}]"), word);
                let words = words.iter().enumerate().map(word).collect::<Result<Vec<_>>>()?;
                Ok(vec![Words { place: self.place(value.span().start, key), words }])
            }
            DeValue::Table(table) => {
                let mut options = Vec::new();
                // In the order of the file, which matters to some grates.
                let mut entries: Vec<_> = table.iter().collect();
                entries.sort_by_key(|(name, _)| name.span().start);
                for (name, value) in entries {
                    let key = format!("{key}.{}", name.get_ref());
                    self.option(&key, name.get_ref(), value, &mut options)?;
                }
                Ok(options)
            }
            _ => Err(self.error(value.span().start, key, "must be an array of words or a table of options")),
        }
    }

    fn option(&self, key: &str, name: &str, value: &Spanned<DeValue<'_>>, options: &mut Vec<Words>) -> Result<()> {
        if name.is_empty() || name.starts_with('-') || name.contains('=') {
            return Err(self.error(value.span().start, key, "must be the name of an option without its dashes"));
        }
        let mut add = |words| options.push(Words { place: self.place(value.span().start, key), words });
        match value.get_ref() {
            DeValue::Boolean(true) if name.len() == 1 => add(vec![format!("-{name}")]),
            DeValue::Boolean(true) => add(vec![format!("--{name}")]),
            DeValue::Boolean(false) => {}
            DeValue::Array(values) => {
                for (at, value) in values.iter().enumerate() {
                    if matches!(value.get_ref(), DeValue::Array(_) | DeValue::Boolean(_)) {
                        return Err(self.error(value.span().start, &format!("{key}[{at}]"), "must be a word"));
                    }
                    self.option(&format!("{key}[{at}]"), name, value, options)?;
                }
            }
            _ if name.len() == 1 => add(vec![format!("-{name}"), self.word(key, value)?]),
            _ => add(vec![format!("--{name}={}", self.word(key, value)?)]),
        }
        Ok(())
    }

    fn word(&self, key: &str, value: &Spanned<DeValue<'_>>) -> Result<String> {
        let word = match value.get_ref() {
            DeValue::String(word) => word.to_string(),
            DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_owned(),
            _ => return Err(self.error(value.span().start, key, "must be a string or a number")),
        };
        if word.contains('\0') {
            bail!(self.error(value.span().start, key, "has a NUL byte"));
        }
        Ok(word)
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

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
            ("", "f:1: grate: missing; expected at least one [[grate]]"),
            ("x = 1", "f:1: x: unknown key; the only key here is `grate`"),
            ("grate = 3", "f:1: grate: must be an array of grates"),
            (
                "\n[[grate]]\nnam = \"x\"",
                "f:3: grate[0].nam: unknown key; the keys are name, options, clamp, inside and stacks",
            ),
            ("[[grate]]\nname = 1.5", "f:2: grate[0].name: must be a string or a number"),
            ("[[grate]]\nname = \"%{\"", "f:2: grate[0].name: must be a program's name"),
            ("[[grate]]\noptions = []", "f:1: grate[0]: must have `name` or `clamp`"),
            (
                "[[grate]]\nclamp = { prefix = \"/\" }",
                "f:1: grate[0]: a clamp needs `inside`, and takes its options in `clamp`",
            ),
            (
                "[[grate]]\nname = \"a\"\noptions = { \"--x\" = 1 }",
                "f:3: grate[0].options.--x: must be the name of an option without its dashes",
            ),
            (
                "[[grate]]\nname = \"a\"\n\ninside = [\n  { name = \"b\" },\n  { },\n]",
                "f:6: grate[0].inside[1]: must have `name` or `clamp`",
            ),
            ("[[grate]]\nname = \"a\"\nstacks = [1]", "f:3: grate[0].stacks[0]: must be an array of grates"),
            (
                "[[grate]]\nname = \"a\"\ninside = []\nstacks = []",
                "f:4: grate[0].stacks: `inside` and `stacks` exclude each other",
            ),
        ];
        for (text, wanted) in cases {
            assert_eq!(parse("f", text).unwrap_err().to_string(), wanted, "{text}");
        }
        let broken = parse("f", "[[grate]]\nname = \"x\n").unwrap_err().to_string();
        assert!(broken.starts_with("f:2: name: "), "{broken}");
    }
}
