//! Settings in JSON: mistakes with their places, and keys that have no part in a policy.

use anyhow::{Result, anyhow};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::draft::{Draft, Fate};
use crate::plan::source::{Source, readable};

/// The fate of a key.
#[derive(Clone, Copy)]
pub enum Key {
    /// The reader of the format goes by it.
    Read,
    /// A table with these keys.
    Table(&'static [(&'static str, Key)]),
    /// It is not kept, for this reason.
    Lost(&'static str),
    /// A sandbox has it without a policy.
    Holds(&'static str),
}

/// Reads a value.
///
/// # Errors
/// A mistake as NAME:LINE:COLUMN: KEY: MISTAKE.
pub fn parsed<T: DeserializeOwned>(source: &Source<'_>) -> Result<T> {
    let mut from = serde_json::Deserializer::from_str(source.text);
    let place = |error: &serde_json::Error, key: &str| {
        let said = error.to_string();
        // The place is printed before it.
        let what = said.rfind(" at line ").map_or(said.as_str(), |at| &said[..at]);
        // A path that is not known to its end has a question mark there.
        let key = key.trim_end_matches(['.', '?']);
        let key = if key.is_empty() { String::new() } else { format!(" {key}:") };
        anyhow!("{}:{}:{}:{key} {}", source.name, error.line(), error.column(), readable(what))
    };
    let value =
        serde_path_to_error::deserialize(&mut from).map_err(|error| place(error.inner(), &error.path().to_string()))?;
    from.end().map_err(|error| place(&error, ""))?;
    Ok(value)
}

/// Notes the keys that have no part in a policy. Those that are off or empty say nothing.
pub fn note_keys(draft: &mut Draft, prefix: &str, table: &Map<String, Value>, known: &[(&str, Key)]) {
    for (name, value) in table {
        let key = format!("{prefix}{name}");
        let says_nothing = match value {
            Value::Null | Value::Bool(false) => true,
            Value::Array(all) => all.is_empty(),
            Value::Object(all) => all.is_empty(),
            _ => false,
        };
        match known.iter().find(|(known, _)| known == name).map(|(_, key)| *key) {
            Some(Key::Read) => {}
            Some(Key::Table(keys)) => {
                if let Value::Object(table) = value {
                    note_keys(draft, &format!("{key}."), table, keys);
                }
            }
            Some(Key::Lost(why)) if !says_nothing => draft.note(Fate::Lost, key, None, why),
            Some(Key::Holds(why)) if !says_nothing => draft.note(Fate::Holds, key, None, why),
            Some(_) => {}
            None => draft.note(Fate::Lost, key, None, "an unknown key"),
        }
    }
}
