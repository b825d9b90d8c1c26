//! The largest amounts that a run has used of its limits, from the notes of the resource grate.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::notes::Notes;
use crate::amount::Kind;

/// The limits of a run, and the file with the amounts used.
pub struct Peaks {
    notes: Arc<Notes>,
    /// The name and the amount of each.
    limits: Vec<(&'static str, String)>,
}

impl Peaks {
    /// The peaks of limits whose grate writes to `notes`.
    pub fn new(notes: Arc<Notes>, limits: Vec<(&'static str, String)>) -> Peaks {
        Peaks { notes, limits }
    }

    /// The path of the notes for the grate.
    pub fn path(&self) -> String {
        self.notes.path()
    }

    /// The largest amount used of each limit: bytes, seconds, or a number. Null if the grate was
    /// killed before it wrote its notes.
    pub fn read(&self) -> Value {
        let Ok(used) = self.notes.read() else { return Value::Null };
        let of = |(name, amount): &(&'static str, String)| {
            let kind = Kind::of(name);
            let peak = used.get(noted(name))?.as_u64()?;
            Some((
                (*name).to_owned(),
                json!({"peak": shown(kind, peak), "limit": kind.parse(amount).map(|most| shown(kind, most))}),
            ))
        };
        self.limits.iter().filter_map(of).collect::<Map<_, _>>().into()
    }
}

/// The resource grate's name of a limit.
pub fn noted(limit: &str) -> &str {
    if limit == "disk" { "write.file" } else { limit }
}

fn shown(kind: Kind, amount: u64) -> Value {
    match kind {
        Kind::Time => json!(std::time::Duration::from_nanos(amount).as_secs_f64()),
        Kind::Bytes | Kind::Count => json!(amount),
    }
}
