//! `--grate 'NAME [OPTIONS]'`: grates of the user. They come between the policy and the command:
//! they see the calls of the command first, and their own calls meet the policy like calls of the
//! command.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use lind_kernel::cage::is_grate_name;

use super::grates::Folders;

/// The end of a grate's file name.
const SUFFIX: &str = "_grate";

/// The words of these grates on the line; the first grate is nearest to the policy. `folders` are
/// directories of grates besides our own.
///
/// # Errors
/// A mistake in one of them.
pub fn words(grates: &[String], folders: &[PathBuf]) -> Result<Vec<OsString>> {
    for folder in folders {
        ensure!(folder.is_dir(), "--grates {}: not a directory", folder.display());
    }
    let folders = Folders::new(folders);
    let of_one = |text: &String| one(text, &folders).with_context(|| format!("--grate {text}"));
    Ok(grates.iter().map(of_one).collect::<Result<Vec<_>>>()?.concat())
}

fn one(text: &str, folders: &Folders) -> Result<Vec<OsString>> {
    let mut words = split(text)?;
    let Some(name) = words.first_mut() else { bail!("expected the name of a grate") };
    ensure!(!name.contains('/'), "name the grate without its directory, and the directory with --grates DIR");
    if !name.ends_with(SUFFIX) {
        name.push_str(SUFFIX);
    }
    ensure!(is_grate_name(name.as_bytes()) && !name.starts_with(['-', '%']), "not the name of a grate");
    ensure!(folders.find(name).is_some(), "{name}: no such grate in {}", folders.names());
    ensure!(
        is_balanced(&words),
        "each %{{ needs a %}} behind it: the grates and the command that follow are none of its"
    );
    // This ends the options. Otherwise the command, which may come from somebody else, would be the
    // value of an option without one.
    if words.last().is_none_or(|last| last != "%}") {
        words.push("--".to_owned());
    }
    Ok(words.into_iter().map(OsString::from).collect())
}

/// Whether each stack that is begun is ended, too.
fn is_balanced(words: &[String]) -> bool {
    let step = |depth: Option<usize>, word: &String| match word.as_str() {
        "%{" => depth?.checked_add(1),
        "%}" => depth?.checked_sub(1),
        _ => depth,
    };
    words.iter().fold(Some(0), step) == Some(0)
}

/// Splits a text into words like a shell: single quotes quote everything, and a backslash in double
/// quotes or outside quotes the next character.
fn split(text: &str) -> Result<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut letters = text.chars();
    while let Some(c) = letters.next() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => {
                word.get_or_insert_default();
                quote = Some(c);
            }
            ('\\', None | Some('"')) => {
                let next = letters.next().context("ends with a backslash")?;
                let word = word.get_or_insert_default();
                if quote.is_some() && !matches!(next, '"' | '\\' | '$' | '`') {
                    word.push('\\');
                }
                word.push(next);
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    ensure!(quote.is_none(), "a quotation mark is not closed");
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_a_shell() {
        let of = |text: &str| split(text).unwrap();
        assert_eq!(of("strace -e 'trace=a b'  -o\t\"x y\\\"\""), ["strace", "-e", "trace=a b", "-o", "x y\""]);
        assert_eq!(of("a\\ b '' \"\" c'd'\"e\" \"\\n\""), ["a b", "", "", "cde", "\\n"]);
        assert!(of(" \t").is_empty());
        assert!(split("'a").is_err() && split("a\\").is_err() && split("\"").is_err());
    }

    #[test]
    fn a_grate_takes_no_word_of_the_command() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["strace", "umask", "namespace"] {
            std::fs::write(folder.path().join(format!("{name}_grate.wasm")), "").unwrap();
        }
        let of_text = |text: &str| words(&[text.to_owned()], &[folder.path().to_owned()]);
        let of = |text: &str| of_text(text).unwrap().join(std::ffi::OsStr::new(" ")).into_string().unwrap();
        assert_eq!(of("strace -o"), "strace_grate -o --");
        assert_eq!(of("umask_grate"), "umask_grate --");
        assert_eq!(of("namespace --prefix /tmp %{ imfs_grate %}"), "namespace_grate --prefix /tmp %{ imfs_grate %}");
        for wrong in ["", "'", "./x_grate", "-x", "%{", "''", "nosuch"] {
            assert!(of_text(wrong).is_err(), "{wrong}");
        }
        for wrong in
            ["namespace %{", "namespace %}", "namespace %{ umask %} %}", "namespace %} %{", "namespace %{ umask"]
        {
            let error = format!("{:#}", of_text(wrong).unwrap_err());
            assert!(error.contains("each %{ needs a %} behind it"), "{wrong}: {error}");
        }
    }
}
