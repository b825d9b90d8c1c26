//! How near a run came to its limits, as the resource grate notes it.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::amount::Kind;
use super::notes::Notes;

/// The limits of a run, and what counts against them.
pub struct Peaks {
    notes: Arc<Notes>,
    /// Name and amount.
    limits: Vec<(&'static str, String)>,
}

impl Peaks {
    /// Of limits whose grate notes there.
    pub fn new(notes: Arc<Notes>, limits: Vec<(&'static str, String)>) -> Peaks {
        Peaks { notes, limits }
    }

    /// Where the grate notes them.
    pub fn path(&self) -> String {
        self.notes.path()
    }

    /// For each limit what was used of it at most: bytes, seconds, or how many. Null if the grate was ended before it could say.
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

/// As the resource grate calls a limit.
pub fn noted(limit: &str) -> &str {
    if limit == "disk" { "write.file" } else { limit }
}

fn shown(kind: Kind, amount: u64) -> Value {
    match kind {
        Kind::Time => json!(std::time::Duration::from_nanos(amount).as_secs_f64()),
        Kind::Bytes | Kind::Count => json!(amount),
    }
}
