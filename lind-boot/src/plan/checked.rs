//! The parts of a policy that are checked as they are read, so that a mistake has its place.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess, Visitor};

use super::relative::{is_relative, is_sound};

/// The prefix of a program's name that is the hash of its file.
pub const HASH: &str = "blake3:";

/// The keys that a program may have. The others are for the whole sandbox.
const OF_PROGRAM: [&str; 5] = ["network", "allow", "read", "write", "programs"];

/// Says what is wrong with a text, if anything is.
pub(super) type Check = fn(&str) -> Result<(), String>;

fn wrong_if(is_wrong: bool, text: &str, what: &str) -> Result<(), String> {
    if is_wrong { Err(format!("{text}: {what}")) } else { Ok(()) }
}

/// # Errors
/// A text that is not the name of a file in any directory.
pub fn single(name: &str) -> Result<(), String> {
    let is_wrong = name.is_empty() || name.contains('/') || matches!(name, "." | "..");
    wrong_if(is_wrong, name, "expected a name without a slash, in which `*` and `?` match as in a shell")
}

fn name(name: &str) -> Result<(), String> {
    let is_wrong = name.starts_with('/') || name.split('/').any(|part| part == ".." || part.is_empty());
    wrong_if(is_wrong, name, "must be relative to each volume, without `..`")?;
    let has_stars = name.split('/').skip(1).any(|part| part == "**");
    wrong_if(has_stars, name, "`**` is allowed only at the beginning, as in `**/NAME`")
}

fn call(name: &str) -> Result<(), String> {
    let is_wrong = lind_abi::syscall_named(name).is_none();
    wrong_if(is_wrong, name, "not a system call; `lind-boot syscalls` lists them")
}

fn pattern(pattern: &str) -> Result<(), String> {
    let is_wrong = is_relative(pattern) && !is_sound(pattern);
    wrong_if(is_wrong, pattern, "must begin with /, or be relative to each volume without `.` and `..`")
}

fn program(name: &str) -> Result<(), String> {
    let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let hash = name.strip_prefix(HASH).map(|digits| digits.len() == 64 && digits.bytes().all(is_digit));
    let is_right = hash.unwrap_or_else(|| name.starts_with('/'));
    wrong_if(!is_right, name, "must be a path that begins with /, or blake3: and 64 hexadecimal digits")
}

fn of_program(key: &str) -> Result<(), String> {
    let names = OF_PROGRAM.join(", ");
    if OF_PROGRAM.contains(&key) { Ok(()) } else { Err(format!("unknown key; the keys of a program are {names}")) }
}

/// A text that is checked.
pub(super) struct Text(pub Check);

impl<'de> DeserializeSeed<'de> for Text {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<String, D::Error> {
        from.deserialize_str(self)
    }
}

impl Visitor<'_> for Text {
    type Value = String;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a string")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
        (self.0)(text).map_err(E::custom)?;
        Ok(text.to_owned())
    }
}

/// A list of them.
struct List(Check);

impl<'de> Visitor<'de> for List {
    type Value = Vec<String>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a list of strings")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Vec<String>, A::Error> {
        std::iter::from_fn(|| from.next_element_seed(Text(self.0)).transpose()).collect()
    }
}

/// Names that are relative to volumes.
pub fn protected<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    from.deserialize_seq(List(name))
}

/// Names in any directory.
pub fn excepted<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    from.deserialize_seq(List(single))
}

/// Names of system calls.
pub fn calls<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    from.deserialize_seq(List(call)).map(Some)
}

/// Patterns of paths.
pub fn patterns<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Vec<String>>, D::Error> {
    from.deserialize_seq(List(pattern)).map(Some)
}

/// A list of names that are relative to volumes, or a table.
pub fn list_or_table<'de, D: Deserializer<'de>, T>(from: D) -> Result<T, D::Error>
where
    T: Deserialize<'de> + From<Vec<String>>,
{
    from.deserialize_any(Either(PhantomData))
}

struct Either<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de> + From<Vec<String>>> Visitor<'de> for Either<T> {
    type Value = T;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a list of strings, or a table")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, from: A) -> Result<T, A::Error> {
        List(name).visit_seq(from).map(T::from)
    }

    fn visit_map<A: MapAccess<'de>>(self, from: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(from))
    }
}

/// A table of programs, each with some of the keys of `T`.
pub fn programs<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<BTreeMap<String, T>, D::Error> {
    from.deserialize_map(Programs(PhantomData))
}

struct Programs<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Programs<T> {
    type Value = BTreeMap<String, T>;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a table of tables")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Self::Value, A::Error> {
        let mut all = BTreeMap::new();
        while let Some(name) = from.next_key_seed(Text(program))? {
            all.insert(name, from.next_value_seed(Rules(PhantomData))?);
        }
        Ok(all)
    }
}

/// The rules of one program.
struct Rules<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> DeserializeSeed<'de> for Rules<T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<T, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Rules<T> {
    type Value = T;

    fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("a table")
    }

    fn visit_map<A: MapAccess<'de>>(self, from: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(Few(from)))
    }
}

/// A table whose keys are checked.
struct Few<A>(A);

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Few<A> {
    type Error = A::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, A::Error> {
        let key = self.0.next_key_seed(Text(of_program))?;
        key.map(|key| seed.deserialize(key.into_deserializer())).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
        self.0.next_value_seed(seed)
    }
}
