//! The name of an image.

use anyhow::{Result, ensure};

/// The longest name and tag that registries take.
const LONGEST: (usize, usize) = (255, 128);

/// A name with its tag.
#[derive(Debug, PartialEq, Eq)]
pub struct Name {
    /// The name as it was given, with its tag.
    pub given: String,
    /// The same with a registry, as containerd looks for it.
    pub full: String,
    /// The last part, without the tag.
    pub last: String,
}

impl Name {
    /// Parses `NAME[:TAG]`.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub fn parse(text: &str) -> Result<Name> {
        let (name, tag) = match text.rsplit_once(':') {
            // A colon before a slash is that of a port.
            Some((name, tag)) if !tag.contains('/') => (name, tag),
            _ => (text, "latest"),
        };
        let is_tag = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        ensure!(
            !tag.is_empty() && tag.len() <= LONGEST.1 && tag.chars().all(is_tag) && !tag.starts_with(['.', '-']),
            "--tag {text}: a tag has up to {} letters, digits, '_', '.' and '-', and begins with none of the last two",
            LONGEST.1
        );
        let (registry, path) = split(name);
        ensure!(
            name.len() <= LONGEST.0 && path.split('/').all(is_part) && registry.is_none_or(is_registry),
            "--tag {text}: the parts of a name are small letters and digits, with single '.', '_' or '-' between them"
        );
        let full = match registry {
            Some(_) => format!("{name}:{tag}"),
            None if path.contains('/') => format!("docker.io/{name}:{tag}"),
            None => format!("docker.io/library/{name}:{tag}"),
        };
        let last = path.rsplit('/').next().unwrap_or(path).to_owned();
        Ok(Name { given: format!("{name}:{tag}"), full, last })
    }
}

/// The registry of a name, if it has one, and the rest.
fn split(name: &str) -> (Option<&str>, &str) {
    match name.split_once('/') {
        Some((first, rest)) if first.contains(['.', ':']) || first == "localhost" => (Some(first), rest),
        _ => (None, name),
    }
}

/// Whether it is a host with a port behind it or without.
fn is_registry(text: &str) -> bool {
    let (host, port) = text.split_once(':').unwrap_or((text, "0"));
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-';
    host.split('.').all(|part| !part.is_empty() && part.chars().all(is_name)) && port.parse::<u16>().is_ok()
}

/// Whether it is words with `.`, `_`, `__` or any number of `-` between them.
fn is_part(part: &str) -> bool {
    let is_of_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let mut between = part.split(is_of_word).filter(|run| !run.is_empty());
    let is_between = |run: &str| matches!(run, "." | "_" | "__") || run.bytes().all(|byte| byte == b'-');
    part.starts_with(is_of_word) && part.ends_with(is_of_word) && between.all(is_between)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_get_a_registry_and_a_tag() {
        let parsed = |text| Name::parse(text).map(|name| (name.given, name.full, name.last)).unwrap();
        let owned = |a: &str, b: &str, c: &str| (a.to_owned(), b.to_owned(), c.to_owned());
        assert_eq!(parsed("app"), owned("app:latest", "docker.io/library/app:latest", "app"));
        assert_eq!(parsed("lind/tools:1.2"), owned("lind/tools:1.2", "docker.io/lind/tools:1.2", "tools"));
        assert_eq!(
            parsed("localhost:5000/a/b__c-d"),
            owned("localhost:5000/a/b__c-d:latest", "localhost:5000/a/b__c-d:latest", "b__c-d")
        );
        for wrong in [
            "",
            "A",
            "a:",
            "a//b",
            "a/",
            "/a",
            "-a",
            "a-",
            "a b",
            "a:-x",
            "a:b c",
            "a@sha256:x",
            "../a",
            "a..b",
            "é",
            "a.b:x/c",
            "a:1:2/c",
        ] {
            assert!(Name::parse(wrong).is_err(), "{wrong}");
        }
    }
}
