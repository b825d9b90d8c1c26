//! The options of grates that take a value, as manifests declare them: `LETTER NAME USE`, with `-`
//! for a missing one.
//!
//! The runner converts sizes and times to plain numbers. It opens a file that a value names,
//! outside the root and before programs run: the use determines how. Files beside it are declared
//! by their suffixes, separated by commas.

use std::fmt;

/// The use that a grate makes of an option's value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Use {
    /// A text.
    Value,
    /// A size, which the grate gets as a number of bytes.
    Bytes,
    /// A time, which the grate gets as a number of nanoseconds.
    Time,
    /// The amount of the limit that is named before the `=`.
    Limit,
    /// A file of settings in TOML, which the grate gets as JSON with the place of each value.
    Toml,
    /// A file to read.
    Reads,
    /// A file to write; an existing one is emptied.
    Writes,
    /// A file to make, which must not exist.
    Creates,
    /// A file to read, which is made if it does not exist.
    Keeps,
    /// A file to read and change, which is made if it does not exist.
    Updates,
    /// A database, made if it does not exist, and its log; or a directory with both and further
    /// files.
    State,
}

/// The part of the value that names the file, or is the amount.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Part {
    /// All of it.
    Whole,
    /// The part before the first `=`.
    Before,
    /// The part after it.
    Behind,
}

/// An option that takes a value.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Takes {
    /// The letter, for `-p VALUE`.
    pub letter: Option<char>,
    /// The name, for `--policy VALUE`.
    pub name: Option<String>,
    /// The use of the value.
    pub what: Use,
    /// The part of the value that names the file, or is the amount.
    pub part: Part,
    /// Suffixes that name further files beside the file.
    pub beside: Vec<String>,
}

const WORDS: [(&str, Use, Part); 14] = [
    ("value", Use::Value, Part::Whole),
    ("bytes", Use::Bytes, Part::Whole),
    ("=bytes", Use::Bytes, Part::Behind),
    ("time", Use::Time, Part::Whole),
    ("=limit", Use::Limit, Part::Behind),
    ("toml", Use::Toml, Part::Whole),
    ("reads", Use::Reads, Part::Whole),
    ("writes", Use::Writes, Part::Whole),
    ("creates", Use::Creates, Part::Whole),
    ("keeps", Use::Keeps, Part::Whole),
    ("updates", Use::Updates, Part::Whole),
    ("state", Use::State, Part::Whole),
    ("reads=", Use::Reads, Part::Before),
    ("=writes", Use::Writes, Part::Behind),
];

impl Takes {
    /// Reads an entry; none if it is malformed.
    pub(crate) fn parse(text: &str) -> Option<Takes> {
        let [letter, name, what] = text.split(' ').collect::<Vec<_>>()[..] else { return None };
        let mut what = what.split(',');
        let word = what.next()?;
        let &(_, of, part) = WORDS.iter().find(|(known, ..)| *known == word)?;
        let mut letters = letter.chars();
        let takes = Takes {
            letter: letters.next().filter(|letter| *letter != '-'),
            name: Some(name.to_owned()).filter(|name| name != "-"),
            what: of,
            part,
            beside: what.map(str::to_owned).collect(),
        };
        (letters.next().is_none() && (takes.letter.is_some() || takes.name.is_some())).then_some(takes)
    }
}

impl fmt::Display for Takes {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word =
            WORDS.iter().find(|(_, what, part)| (*what, *part) == (self.what, self.part)).map_or("value", |row| row.0);
        write!(to, "{} {} {word}", self.letter.unwrap_or('-'), self.name.as_deref().unwrap_or("-"))?;
        self.beside.iter().try_for_each(|ending| write!(to, ",{ending}"))
    }
}
