//! The text of a TOML file, and messages about it: the place and the key of a mistake, and the key
//! that was probably meant.

use std::ops::Range;

use anyhow::{Result, anyhow};
use serde::de::DeserializeOwned;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The name of a file for messages, and its text.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// The name.
    pub name: &'a str,
    /// The text.
    pub text: &'a str,
}

impl Source<'_> {
    /// Reads the file as a value.
    ///
    /// # Errors
    /// An error NAME:LINE:COLUMN: KEY: MISTAKE.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T> {
        toml::from_str(self.text).map_err(|error| {
            let (at, message) = (error.span().map_or(0, |span| span.start), readable(error.message()));
            // A key that the file itself lacks is not in the value of another one.
            let is_lacking = at == 0 && message.starts_with("missing field");
            if is_lacking { self.error(at, "", &message) } else { self.error_at(at, &message) }
        })
    }

    /// An error about the value at a byte.
    pub fn error_at(&self, at: usize, what: &str) -> anyhow::Error {
        self.error(at, &self.key_at(at), what)
    }

    /// NAME:LINE: KEY of the value at a byte.
    pub fn line_of(&self, at: usize) -> String {
        format!("{}:{}: {}", self.name, self.place(at).0, self.key_at(at))
    }

    /// An error about the value of a key.
    pub fn error(&self, at: usize, key: &str, what: &str) -> anyhow::Error {
        let (line, column) = self.place(at);
        anyhow!("{}:{line}:{column}: {key}{}{what}", self.name, if key.is_empty() { "" } else { ": " })
    }

    /// The line and the column of a byte, from 1.
    pub fn place(&self, at: usize) -> (usize, usize) {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line = before.rsplit('\n').next().unwrap_or_default();
        (before.matches('\n').count() + 1, line.chars().count() + 1)
    }

    /// The key of the value at a byte, as in `limits.memory` and `read[1]`.
    fn key_at(&self, at: usize) -> String {
        match DeTable::parse(self.text) {
            Ok(table) => in_table(table.get_ref(), at).unwrap_or_default(),
            // Of a mistake in the syntax, the text before the `=` in its line.
            Err(_) => {
                let before = self.text.get(..at).unwrap_or_default();
                let start = before.rfind('\n').map_or(0, |newline| newline + 1);
                let line = self.text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
                line.split_once('=').map_or_else(String::new, |(key, _)| key.trim().to_owned())
            }
        }
    }
}

fn in_table(table: &DeTable<'_>, at: usize) -> Option<String> {
    table.iter().find_map(|(key, value)| {
        let rest = if holds(&key.span(), at) { Some(String::new()) } else { in_value(value, at) }?;
        let dot = if rest.is_empty() || rest.starts_with('[') { "" } else { "." };
        Some(format!("{}{dot}{rest}", key.get_ref()))
    })
}

fn in_value(value: &Spanned<DeValue<'_>>, at: usize) -> Option<String> {
    let inside = match value.get_ref() {
        DeValue::Table(table) => in_table(table, at),
        DeValue::Array(all) => all.iter().enumerate().find_map(|(number, one)| {
            let rest = in_value(one, at)?;
            let dot = if rest.is_empty() || rest.starts_with('[') { "" } else { "." };
            Some(format!("[{number}]{dot}{rest}"))
        }),
        _ => None,
    };
    inside.or_else(|| holds(&value.span(), at).then(String::new))
}

fn holds(span: &Range<usize>, at: usize) -> bool {
    span.contains(&at) || span.start == at
}

/// The words of serde, as a message for people.
pub fn readable(message: &str) -> String {
    let message = message.trim_end().replace('\n', "; ");
    let Some((what, expected)) = ["unknown field", "unknown variant"]
        .iter()
        .find_map(|kind| message.strip_prefix(kind)?.split_once(", expected "))
    else {
        return message
            .replace("a sequence", "a list")
            .replace("a map", "a table")
            .replace("wanted string or table", "expected a string");
    };
    let is_key = message.starts_with("unknown field");
    let names: Vec<_> = expected.split('`').skip(1).step_by(2).collect();
    let meant = nearest(what.trim().trim_matches('`'), &names);
    let meant = meant.map_or_else(String::new, |name| format!("; is {name} meant?"));
    let what = if is_key { "unknown key; the keys are" } else { "must be one of" };
    format!("{what} {}{meant}", names.join(", "))
}

/// The name that a word seems to be meant as.
pub fn nearest<'a>(word: &str, names: &[&'a str]) -> Option<&'a str> {
    let near = names.iter().map(|name| (strsim::jaro(word, name), *name)).filter(|(score, _)| *score > 0.75);
    near.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct All {
        one: u8,
        #[serde(default)]
        list: Vec<Inside>,
    }

    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Inside {
        text: String,
    }

    #[test]
    fn mistakes_have_places_and_keys() {
        for (text, wanted) in [
            ("one = true", "f:1:7: one: invalid type: boolean `true`, expected u8"),
            ("one = 1\ntwo = 2", "f:2:1: two: unknown key; the keys are one, list"),
            ("one = 1\nlits = 2", "f:2:1: lits: unknown key; the keys are one, list; is list meant?"),
            (
                "one = 1\n[[list]]\ntext = 'a'\n[[list]]\ntext = 1",
                "f:5:8: list[1].text: invalid type: integer `1`, expected a string",
            ),
            ("one = 1\nlist = 7", "f:2:8: list: invalid type: integer `7`, expected a list"),
            (
                "one = 1\nlist = [{ txet = 'ü' }]",
                "f:2:11: list[0].txet: unknown key; the keys are text; is text meant?",
            ),
            ("list = []", "f:1:1: missing field `one`"),
        ] {
            let source = Source { name: "f", text };
            assert_eq!(source.read::<All>().unwrap_err().to_string(), wanted, "{text}");
        }
        let broken = Source { name: "f", text: "one = 1\nlist = [" }.read::<All>().unwrap_err().to_string();
        assert!(broken.starts_with("f:2:"), "{broken}");
    }
}
