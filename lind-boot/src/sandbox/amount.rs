//! Amounts of limits: numbers with units, as policies and the resource grate have them.

/// What a limit counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Bytes: 64M.
    Bytes,
    /// Time, in nanoseconds: 10s.
    Time,
    /// Things.
    Count,
}

const BYTES: [(&str, u64); 6] = [("", 1), ("B", 1), ("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30), ("T", 1 << 40)];
const TIMES: [(&str, u64); 6] = [
    ("us", 1000),
    ("ms", 1_000_000),
    ("", 1_000_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

impl Kind {
    /// That of a limit.
    pub fn of(limit: &str) -> Kind {
        match limit {
            "memory" | "disk" => Kind::Bytes,
            "cpu" => Kind::Time,
            _ => Kind::Count,
        }
    }

    /// None for a text that is no amount.
    pub fn parse(self, text: &str) -> Option<u64> {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let units: &[(&str, u64)] = match self {
            Kind::Bytes => &BYTES,
            Kind::Time => &TIMES,
            Kind::Count => &[("", 1)],
        };
        let (_, times) = units.iter().find(|(unit, _)| *unit == &text[digits.len()..])?;
        digits.parse::<u64>().ok()?.checked_mul(*times)
    }
}

/// The smaller of two amounts; the second where one cannot be read.
pub fn at_most(kind: Kind, a: &str, most: &str) -> String {
    let smaller = kind.parse(a).zip(kind.parse(most)).is_some_and(|(a, most)| a < most);
    if smaller { a } else { most }.to_owned()
}

/// The larger of two amounts.
pub fn at_least(kind: Kind, a: &str, least: &str) -> String {
    let larger = kind.parse(a).zip(kind.parse(least)).is_some_and(|(a, least)| a > least);
    if larger { a } else { least }.to_owned()
}

/// A limit that the same run stays below, on a machine that is slower, with other threads in other places.
pub fn with_headroom(limit: &str, kind: Kind, used: u64) -> String {
    match kind {
        Kind::Bytes => {
            let step = if limit == "memory" { 64 } else { 1 };
            let mebibytes = (used.saturating_mul(2) >> 20) / step * step + step;
            format!("{mebibytes}M")
        }
        Kind::Time => format!("{}s", 10 + used.saturating_mul(4) / 1_000_000_000),
        Kind::Count => (used.saturating_mul(2).saturating_add(16)).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_compared_by_what_they_are() {
        assert_eq!(at_most(Kind::Bytes, "900M", "1G"), "900M");
        assert_eq!(at_least(Kind::Bytes, "900M", "1G"), "1G");
        assert_eq!(at_most(Kind::Time, "90s", "1m"), "1m");
        assert_eq!(at_most(Kind::Count, "5", "many"), "many");
    }

    #[test]
    fn there_is_room_above_what_was_used() {
        assert_eq!(with_headroom("memory", Kind::Bytes, 50 << 20), "128M");
        assert_eq!(with_headroom("disk", Kind::Bytes, 0), "1M");
        assert_eq!(with_headroom("cpu", Kind::Time, 500_000_000), "12s");
        assert_eq!(with_headroom("cages", Kind::Count, 3), "22");
    }
}
