//! The amounts that a run uses of its limits. The resource grate counts in a file in memory, which
//! can be read at any time, also when the grate has been killed.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt;

use anyhow::{Context, Result};
use rustix::fs::{MemfdFlags, memfd_create};
use serde_json::{Map, Value, json};

use crate::amount::{Amount, Kind};

/// The amounts in the file, in its order (`grates/resource/tables.h`): first those that are used,
/// then the largest of each.
const NAMES: [&str; 14] = [
    "cpu",
    "wall",
    "memory",
    "cages",
    "threads",
    "files",
    "read",
    "read.file",
    "read.network",
    "read.pipe",
    "write",
    "write.file",
    "write.network",
    "write.pipe",
];

/// The limits of a run, and the file with the amounts used.
pub struct Used {
    file: File,
    /// The name and the amount of each.
    limits: Vec<(&'static str, Amount)>,
}

/// How much of a limit is used.
struct Use {
    used: Amount,
    peak: Amount,
    limit: Amount,
}

impl Used {
    /// The use of these limits, of which nothing is used yet.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn new(limits: Vec<(&'static str, Amount)>) -> Result<Used> {
        let file = File::from(memfd_create("used", MemfdFlags::CLOEXEC).context("cannot create a file in memory")?);
        file.set_len(2 * 8 * NAMES.len() as u64).context("cannot create a file in memory")?;
        // The thread that reads it at the end may have a descriptor table of its own.
        lind_kernel::fd::keep_also(file.as_fd());
        Ok(Used { file, limits })
    }

    /// Its path for an option of the grate, valid before the walls go up.
    pub fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.file.as_raw_fd())
    }

    fn amounts(&self) -> impl Iterator<Item = (&'static str, Use)> {
        let of = |(name, limit): &(&'static str, Amount)| {
            let amount = |number| Amount { number, ..*limit };
            let at = NAMES.iter().position(|known| *known == noted(name))?;
            let (used, peak) = (self.word(at)?, self.word(at + NAMES.len())?);
            Some((*name, Use { used: amount(used), peak: amount(peak.max(used)), limit: *limit }))
        };
        self.limits.iter().filter_map(of)
    }

    fn word(&self, at: usize) -> Option<u64> {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, 8 * at as u64).ok()?;
        // An amount that is given back at this moment may be less than nothing.
        Some(u64::try_from(i64::from_le_bytes(bytes)).unwrap_or(0))
    }

    /// The largest amount used of each limit: bytes, seconds, or a number.
    pub fn peaks(&self) -> Value {
        let of = |(name, Use { peak, limit, .. }): (&str, Use)| {
            (name.to_owned(), json!({"peak": shown(peak), "limit": shown(limit)}))
        };
        self.amounts().map(of).collect::<Map<_, _>>().into()
    }

    /// The amount used of each limit now, and the largest: bytes, seconds, or a number.
    pub fn now(&self) -> Map<String, Value> {
        let of = |(name, Use { used, peak, limit }): (&str, Use)| {
            (name.to_owned(), json!({"used": shown(used), "peak": shown(peak), "limit": shown(limit)}))
        };
        self.amounts().map(of).collect()
    }
}

/// The resource grate's name of a limit.
pub fn noted(limit: &str) -> &str {
    if limit == "disk" { "write.file" } else { limit }
}

fn shown(amount: Amount) -> Value {
    match amount.kind {
        Kind::Time => json!(std::time::Duration::from_nanos(amount.number).as_secs_f64()),
        Kind::Bytes | Kind::Count => json!(amount.number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_while_they_change() {
        let used =
            Used::new(vec![("cpu", Kind::Time.parse("2s").unwrap()), ("disk", Kind::Bytes.parse("1K").unwrap())])
                .unwrap();
        let write = |at: usize, amount: i64| used.file.write_all_at(&amount.to_le_bytes(), 8 * at as u64).unwrap();
        write(0, 500_000_000);
        write(NAMES.len(), 1_000_000_000);
        write(11, -7);
        write(NAMES.len() + 11, 600);
        assert_eq!(used.peaks(), json!({"cpu": {"peak": 1.0, "limit": 2.0}, "disk": {"peak": 600, "limit": 1024}}));
        let now = Value::from(used.now());
        assert_eq!(now["cpu"], json!({"used": 0.5, "peak": 1.0, "limit": 2.0}));
        assert_eq!(now["disk"], json!({"used": 0, "peak": 600, "limit": 1024}));
        used.file.set_len(3).unwrap();
        assert_eq!(used.peaks(), json!({}));
    }
}
