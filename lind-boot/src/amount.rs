//! Amounts of limits: numbers with units, as in policies and options of the resource grate.

/// The kinds of limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Bytes, such as 64M.
    Bytes,
    /// Time in nanoseconds, such as 10s.
    Time,
    /// A number of things.
    Count,
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
    /// The kind of the limit with this name.
    pub fn of(limit: &str) -> Kind {
        match limit {
            "memory" | "disk" => Kind::Bytes,
            "cpu" => Kind::Time,
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

    /// The form that the text of an amount must have.
    pub fn expected(self) -> &'static str {
        match self {
            Kind::Bytes => "must be a size such as 64M, 1.5G",
            Kind::Time => "must be a time such as 500ms, 10s, 2m",
            Kind::Count => "must be a number",
        }
    }

    /// Parses an amount. None if the text is not one.
    pub fn parse(self, text: &str) -> Option<u64> {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let mut unit = text[digits.len()..].to_owned();
        if self == Kind::Bytes {
            // 64M, 64m, 64MB and 64MiB are the same.
            unit = unit.to_uppercase();
            unit = unit
                .strip_suffix("IB")
                .filter(|unit| !unit.is_empty())
                .or(unit.strip_suffix('B'))
                .unwrap_or(&unit)
                .to_owned();
        }
        let (_, times) = self.units().iter().find(|(name, _)| *name == unit)?;
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if self == Kind::Count && digits.contains('.')
            || !is_number(whole)
            || !is_number(fraction)
            || fraction.len() > 9
        {
            return None;
        }
        let part =
            u128::from(*times) * fraction.parse::<u128>().ok()? / 10_u128.pow(u32::try_from(fraction.len()).ok()?);
        whole.parse::<u64>().ok()?.checked_mul(*times)?.checked_add(u64::try_from(part).ok()?)
    }

    /// Converts an amount that a person has typed to the form for grates. A small number of bytes
    /// without a unit is refused: the unit was probably forgotten.
    ///
    /// # Errors
    /// The form that the text must have.
    pub fn typed(self, text: &str) -> Result<String, String> {
        const FEW: u64 = 1 << 20;
        let bare = self == Kind::Bytes && text.bytes().all(|byte| byte.is_ascii_digit());
        match self.parse(text) {
            Some(amount) if bare && (1..FEW).contains(&amount) => {
                Err(format!("{text} has no unit: write {text}M, or {text}B for bytes"))
            }
            _ => self.plain(text),
        }
    }

    /// Converts an amount to the form for grates: a whole number of the largest unit that divides
    /// it.
    ///
    /// # Errors
    /// The form that the text must have.
    pub fn plain(self, text: &str) -> Result<String, String> {
        let amount = self.parse(text).filter(|amount| i64::try_from(*amount).is_ok()).ok_or(self.expected())?;
        let fits = |(_, times): &&(&str, u64)| amount % times == 0 && amount >= *times;
        let largest = self.units().iter().filter(fits).max_by_key(|(_, times)| times);
        // Amounts below the smallest unit are rounded up to one.
        let (unit, times) = largest.unwrap_or(&self.units()[0]);
        Ok(format!("{}{unit}", amount.div_ceil(*times)))
    }
}

/// The smaller of two amounts; the second if one cannot be parsed.
pub fn at_most(kind: Kind, a: &str, most: &str) -> String {
    let smaller = kind.parse(a).zip(kind.parse(most)).is_some_and(|(a, most)| a < most);
    if smaller { a } else { most }.to_owned()
}

/// The larger of two amounts.
pub fn at_least(kind: Kind, a: &str, least: &str) -> String {
    let larger = kind.parse(a).zip(kind.parse(least)).is_some_and(|(a, least)| a > least);
    if larger { a } else { least }.to_owned()
}

/// A limit that the same run does not reach on a slower machine, with other threads in other
/// places.
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
    fn an_amount_of_few_bytes_has_a_unit() {
        assert!(Kind::Bytes.typed("100").unwrap_err().contains("100M, or 100B"));
        assert_eq!(
            ["100B", "0", "64M", "67108864"].map(|text| Kind::Bytes.typed(text)),
            ["100", "0", "64M", "64M"].map(|text| Ok(text.to_owned()))
        );
        assert_eq!((Kind::Time.typed("10"), Kind::Count.typed("10")), (Ok("10s".into()), Ok("10".into())));
    }

    #[test]
    fn amounts_are_compared_by_what_they_are() {
        assert_eq!(at_most(Kind::Bytes, "900M", "1G"), "900M");
        assert_eq!(at_least(Kind::Bytes, "900M", "1G"), "1G");
        assert_eq!(at_most(Kind::Time, "90s", "1m"), "1m");
        assert_eq!(at_most(Kind::Count, "5", "many"), "many");
    }

    #[test]
    fn amounts_are_taken_as_people_write_them() {
        let bytes = |text: &str| Kind::Bytes.plain(text).unwrap();
        for text in ["64M", "64m", "64MB", "64MiB", "65536k", "64.0M", "67108864"] {
            assert_eq!(bytes(text), "64M", "{text}");
        }
        assert_eq!([bytes("1.5G"), bytes("1k"), bytes("0"), bytes("5B")], ["1536M", "1K", "0", "5"]);
        let time = |text: &str| Kind::Time.plain(text).unwrap();
        assert_eq!(
            [time("0.2s"), time("1.5s"), time("90"), time("120s"), time("0.0000001s")],
            ["200ms", "1500ms", "90s", "2m", "1us"]
        );
        for (kind, wrong) in [
            (Kind::Bytes, "1X"),
            (Kind::Bytes, "iB"),
            (Kind::Bytes, ""),
            (Kind::Bytes, "-1"),
            (Kind::Bytes, "1.G"),
            (Kind::Bytes, ".5G"),
            (Kind::Bytes, "99999999T"),
            (Kind::Bytes, "1iB"),
            (Kind::Time, "1d"),
            (Kind::Time, "1S"),
            (Kind::Count, "abc"),
            (Kind::Count, "1.5"),
        ] {
            assert_eq!(kind.plain(wrong), Err(kind.expected().to_owned()), "{wrong}");
        }
    }

    #[test]
    fn there_is_room_above_what_was_used() {
        assert_eq!(with_headroom("memory", Kind::Bytes, 50 << 20), "128M");
        assert_eq!(with_headroom("disk", Kind::Bytes, 0), "1M");
        assert_eq!(with_headroom("cpu", Kind::Time, 500_000_000), "12s");
        assert_eq!(with_headroom("cages", Kind::Count, 3), "22");
    }
}
