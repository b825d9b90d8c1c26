//! Amounts with units, as people write them: in policies, and for options of lind-boot and of
//! grates. Grates get plain numbers.

use std::fmt;

use serde::de::{Deserializer, Error, Visitor};
use serde::{Serialize, Serializer};

/// The kinds of amounts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// Bytes, such as 64M.
    Bytes,
    /// Time in nanoseconds, such as 10s.
    Time,
    /// A number of things.
    Count,
}

/// A size, a time or a number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Amount {
    /// Its kind.
    pub kind: Kind,
    /// Bytes, nanoseconds, or a number of things.
    pub number: u64,
}

const BYTES: [(&str, u64); 5] = [("", 1), ("K", 1 << 10), ("M", 1 << 20), ("G", 1 << 30), ("T", 1 << 40)];
const TIMES: [(&str, u64); 6] = [
    ("us", 1000),
    ("ms", 1_000_000),
    ("", 1_000_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

impl Kind {
    /// The kind of the limit with this name, in a policy or of the resource grate.
    pub fn of(limit: &str) -> Kind {
        match limit.split('.').next().unwrap_or_default() {
            "memory" | "disk" | "read" | "write" => Kind::Bytes,
            "cpu" | "wall" => Kind::Time,
            _ => Kind::Count,
        }
    }

    fn units(self) -> &'static [(&'static str, u64)] {
        match self {
            Kind::Bytes => &BYTES,
            Kind::Time => &TIMES,
            Kind::Count => &[("", 1)],
        }
    }

    fn expected(self) -> &'static str {
        match self {
            Kind::Bytes => "must be a size such as 64M, 1.5G",
            Kind::Time => "must be a time such as 500ms, 10s, 2m",
            Kind::Count => "must be a number",
        }
    }

    /// Parses an amount.
    ///
    /// # Errors
    /// The form that the text must have.
    pub fn parse(self, text: &str) -> Result<Amount, String> {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = self.unit(&text[digits.len()..]);
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
        let is_sound = is_number(whole)
            && is_number(fraction)
            && fraction.len() <= 9
            && (self != Kind::Count || whole.len() == digits.len());
        let times = unit.filter(|_| is_sound).ok_or(self.expected())?;
        let parts = u128::from(times) * fraction.parse::<u128>().unwrap_or(0);
        let parts = parts / 10_u128.pow(u32::try_from(fraction.len()).unwrap_or(0));
        let number = whole.parse::<u64>().ok().and_then(|whole| whole.checked_mul(times));
        let number = number.zip(u64::try_from(parts).ok()).and_then(|(number, parts)| number.checked_add(parts));
        // An amount below the smallest unit is rounded up to one.
        let smallest = self.units()[0].1;
        let number = number.and_then(|number| number.checked_next_multiple_of(smallest));
        let number = number.filter(|number| i64::try_from(*number).is_ok()).ok_or("is too large")?;
        Ok(Amount { kind: self, number })
    }

    /// The number that one of a unit is.
    fn unit(self, name: &str) -> Option<u64> {
        let mut name = name.to_owned();
        if self == Kind::Bytes {
            // 64M, 64m, 64MB and 64MiB are the same.
            name = name.to_uppercase();
            let short = name.strip_suffix("IB").filter(|name| !name.is_empty()).or(name.strip_suffix('B'));
            name = short.unwrap_or(&name).to_owned();
        }
        self.units().iter().find(|(known, _)| *known == name).map(|(_, times)| *times)
    }

    /// Parses an amount for all programs together. A small number of bytes without a unit is
    /// refused: the unit was probably forgotten.
    ///
    /// # Errors
    /// The form that the text must have.
    pub fn typed(self, text: &str) -> Result<Amount, String> {
        const FEW: u64 = 1 << 20;
        let bare = self == Kind::Bytes && text.bytes().all(|byte| byte.is_ascii_digit());
        match self.parse(text) {
            Ok(amount) if bare && (1..FEW).contains(&amount.number) => {
                Err(format!("{text} has no unit: write {text}M, or {text}B for bytes"))
            }
            parsed => parsed,
        }
    }
}

impl fmt::Display for Amount {
    /// A whole number of the largest unit that divides it.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = |(_, times): &&(&str, u64)| self.number.is_multiple_of(*times) && self.number >= *times;
        let units = self.kind.units();
        let (unit, times) = units.iter().filter(fits).max_by_key(|(_, times)| times).unwrap_or(&units[0]);
        write!(to, "{}{unit}", self.number / times)
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// A size, from a policy or a message.
pub fn bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Amount>, D::Error> {
    from.deserialize_any(Kind::Bytes).map(Some)
}

/// A time.
pub fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Amount>, D::Error> {
    from.deserialize_any(Kind::Time).map(Some)
}

/// A number of things.
pub fn count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Amount>, D::Error> {
    from.deserialize_any(Kind::Count).map(Some)
}

impl Visitor<'_> for Kind {
    type Value = Amount;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a number or a string such as \"64M\"")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Amount, E> {
        self.typed(text).map_err(E::custom)
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Amount, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Amount, E> {
        self.visit_str(&number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Amount, E> {
        self.visit_str(&number.to_string())
    }
}

/// A limit that the same run does not reach on a slower machine, with other threads in other
/// places.
pub fn with_headroom(limit: &str, used: u64) -> Amount {
    let kind = Kind::of(limit);
    let number = match kind {
        Kind::Bytes => {
            let step = if limit == "memory" { 64 << 20 } else { 1 << 20 };
            (used.saturating_mul(2) / step * step).saturating_add(step)
        }
        Kind::Time => (10 + used.saturating_mul(4) / 1_000_000_000).saturating_mul(1_000_000_000),
        Kind::Count => used.saturating_mul(2).saturating_add(16),
    };
    Amount { kind, number }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(parsed: Result<Amount, String>) -> Result<String, String> {
        parsed.map(|amount| amount.to_string())
    }

    #[test]
    fn an_amount_of_few_bytes_has_a_unit() {
        assert!(Kind::Bytes.typed("100").unwrap_err().contains("100M, or 100B"));
        assert_eq!(
            ["100B", "0", "64M", "67108864"].map(|text| shown(Kind::Bytes.typed(text))),
            ["100", "0", "64M", "64M"].map(|text| Ok(text.to_owned()))
        );
        assert_eq!(
            (shown(Kind::Time.typed("10")), shown(Kind::Count.typed("10"))),
            (Ok("10s".into()), Ok("10".into()))
        );
    }

    #[test]
    fn amounts_are_compared_by_what_they_are() {
        let bytes = |text: &str| Kind::Bytes.parse(text).unwrap();
        assert_eq!(bytes("900M").min(bytes("1G")), bytes("900M"));
        assert_eq!(Kind::Time.parse("90s").max(Kind::Time.parse("1m")), Kind::Time.parse("1.5m"));
    }

    #[test]
    fn amounts_are_taken_as_people_write_them() {
        let bytes = |text: &str| shown(Kind::Bytes.parse(text)).unwrap();
        for text in ["64M", "64m", "64MB", "64MiB", "65536k", "64.0M", "67108864"] {
            assert_eq!(bytes(text), "64M", "{text}");
        }
        assert_eq!([bytes("1.5G"), bytes("1k"), bytes("0"), bytes("5B")], ["1536M", "1K", "0", "5"]);
        let time = |text: &str| shown(Kind::Time.parse(text)).unwrap();
        assert_eq!(
            [time("0.2s"), time("1.5s"), time("90"), time("120s"), time("0.0000001s"), time("0")],
            ["200ms", "1500ms", "90s", "2m", "1us", "0us"]
        );
        for (kind, wrong) in [
            (Kind::Bytes, "1X"),
            (Kind::Bytes, "iB"),
            (Kind::Bytes, ""),
            (Kind::Bytes, "-1"),
            (Kind::Bytes, "1.G"),
            (Kind::Bytes, ".5G"),
            (Kind::Bytes, "1iB"),
            (Kind::Time, "1d"),
            (Kind::Time, "1S"),
            (Kind::Count, "abc"),
            (Kind::Count, "1.5"),
        ] {
            assert_eq!(kind.parse(wrong), Err(kind.expected().to_owned()), "{wrong}");
        }
        for wrong in ["99999999T", "99999999999999999999", "18446744073709551615"] {
            assert_eq!(Kind::Bytes.parse(wrong), Err("is too large".to_owned()), "{wrong}");
        }
    }

    #[test]
    fn limits_have_kinds() {
        let kinds = ["memory", "write.file", "disk", "cpu", "wall", "files"].map(Kind::of);
        assert_eq!(kinds, [Kind::Bytes, Kind::Bytes, Kind::Bytes, Kind::Time, Kind::Time, Kind::Count]);
    }

    #[test]
    fn there_is_room_above_what_was_used() {
        let room = |limit: &str, used| with_headroom(limit, used).to_string();
        assert_eq!(room("memory", 50 << 20), "128M");
        assert_eq!(room("disk", 0), "1M");
        assert_eq!(room("cpu", 500_000_000), "12s");
        assert_eq!(room("cages", 3), "22");
    }
}
