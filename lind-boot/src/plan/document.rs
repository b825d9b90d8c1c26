//! Settings of a grate from a TOML file, as the JSON that the grate gets: each value with its place
//! in the file, for messages.
//!
//! A value is `[LINE, COLUMN, TYPE, CONTENT...]`: `array` has its values; `table` an array of
//! `[KEY, VALUE]` in the order of the file; `bool` true or false; `string`, `integer` and `float` a
//! text, which is followed by the bytes and the nanoseconds that it means as an amount, or nulls.
//! Integers have up to 64 bits, which a number in JSON does not keep.

use std::ops::Range;

use anyhow::Result;
use serde_json::{Value, json};
use toml::Spanned;
use toml::de::{DeInteger, DeTable, DeValue};

use super::source::Source;
use crate::amount::Kind;

/// The largest file, in bytes.
pub const MOST: u64 = 1 << 20;

/// Converts a file with this name and text.
///
/// # Errors
/// An error NAME:LINE:COLUMN: MISTAKE.
pub fn from_toml(name: &str, text: &str) -> Result<String> {
    let document = Document(Source { name, text });
    if text.len() as u64 > MOST {
        return Err(document.error(0, "more than 1 MiB"));
    }
    let table = DeTable::parse(text)
        .map_err(|error| document.error(error.span().map_or(0, |span| span.start), error.message()))?;
    Ok(document.table(table.get_ref(), 0..0)?.to_string())
}

struct Document<'a>(Source<'a>);

impl Document<'_> {
    fn error(&self, at: usize, what: &str) -> anyhow::Error {
        self.0.error(at, "", what)
    }

    fn node(&self, at: usize, kind: &str, content: Vec<Value>) -> Value {
        let (line, column) = self.0.place(at);
        [json!(line), json!(column), json!(kind)].into_iter().chain(content).collect()
    }

    fn table(&self, table: &DeTable<'_>, span: Range<usize>) -> Result<Value> {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let entry = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
            let name: &str = AsRef::as_ref(key.get_ref());
            self.check(name, key.span())?;
            Ok(json!([name, self.value(value)?]))
        };
        let entries = entries.into_iter().map(entry).collect::<Result<Vec<_>>>()?;
        Ok(self.node(span.start, "table", vec![entries.into()]))
    }

    fn value(&self, value: &Spanned<DeValue<'_>>) -> Result<Value> {
        let at = value.span().start;
        let scalar = |kind: &str, text: &str| {
            let amount = |kind: Kind| json!(kind.parse(text).ok().map(|amount| amount.number.to_string()));
            self.node(at, kind, vec![text.into(), amount(Kind::Bytes), amount(Kind::Time)])
        };
        Ok(match value.get_ref() {
            DeValue::String(text) => {
                self.check(text, value.span())?;
                scalar("string", text)
            }
            DeValue::Integer(number) => {
                scalar("integer", &whole(number).ok_or_else(|| self.error(at, "more than 64 bits"))?)
            }
            DeValue::Float(number) => match number.as_str().parse::<f64>() {
                Ok(finite) if finite.is_finite() => scalar("float", number.as_str()),
                _ => return Err(self.error(at, "expected a number that is finite")),
            },
            DeValue::Boolean(is) => self.node(at, "bool", vec![(*is).into()]),
            DeValue::Array(all) => {
                let all = all.iter().map(|one| self.value(one)).collect::<Result<Vec<_>>>()?;
                self.node(at, "array", vec![all.into()])
            }
            DeValue::Table(table) => self.table(table, value.span())?,
            DeValue::Datetime(_) => return Err(self.error(at, "dates and times are not supported")),
        })
    }

    /// Refuses a text with a NUL, which is the end of a text for grates.
    fn check(&self, text: &str, span: Range<usize>) -> Result<()> {
        if text.contains('\0') { Err(self.error(span.start, "has a NUL byte")) } else { Ok(()) }
    }
}

/// An integer in decimal digits. Masks, which are not written in decimal digits, may have 64 bits.
fn whole(number: &DeInteger<'_>) -> Option<String> {
    let (digits, radix) = (number.as_str(), number.radix());
    let signed = i64::from_str_radix(digits, radix).map(|number| number.to_string());
    signed.or_else(|_| u64::from_str_radix(digits, radix).map(|number| number.to_string())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_places() {
        let text = "b = \"64M\"\na = [1.5, true]\n[t]\nx.y = -16\n\"ü\".z = 0xffffffffffffffff\n";
        let value: Value = serde_json::from_str(&from_toml("f", text).unwrap()).unwrap();
        let wanted = json!([
            1,
            1,
            "table",
            [
                ["b", [1, 5, "string", "64M", "67108864", null]],
                ["a", [2, 5, "array", [[2, 6, "float", "1.5", "1", "1500000000"], [2, 11, "bool", true]]]],
                [
                    "t",
                    [
                        3,
                        1,
                        "table",
                        [
                            ["x", [4, 1, "table", [["y", [4, 7, "integer", "-16", null, null]]]]],
                            ["ü", [5, 1, "table", [["z", [5, 9, "integer", "18446744073709551615", null, null]]]]],
                        ]
                    ]
                ],
            ]
        ]);
        assert_eq!(value, wanted, "{value}");
    }

    #[test]
    fn mistakes_have_places() {
        for (text, wanted) in [
            ("a = 1\nb = 18446744073709551616", "f:2:5: more than 64 bits"),
            ("a = inf", "f:1:5: expected a number that is finite"),
            ("a = 1979-05-27", "f:1:5: dates and times are not supported"),
            ("a = [\"x\", \"\\u0000\"]", "f:1:11: has a NUL byte"),
            ("\"\\u0000\" = 1", "f:1:1: has a NUL byte"),
        ] {
            assert_eq!(from_toml("f", text).unwrap_err().to_string(), wanted);
        }
        for wrong in ["a = 1\na = 2", "b = ", &format!("a = {}", "[".repeat(10_000)), &"#".repeat(2 << 20)] {
            assert!(from_toml("f", wrong).unwrap_err().to_string().starts_with("f:"));
        }
    }
}
