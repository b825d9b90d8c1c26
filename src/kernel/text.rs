//! Text that guests supply, made safe for a terminal, a shell or a line of a log.
//!
//! A guest chooses names of files, programs and sockets, and so a part of many messages. A terminal
//! obeys control characters, reorders a line by characters of direction, and hides those without
//! width; a line break begins what looks like a message of ours; a shell runs what is pasted. Every
//! message passes [`shown`] or [`fit`] on its way out (`stdio.rs`), and what a user may paste is
//! quoted by [`shell_word`]. In C, `grates/sdk/c/core/text.c` does the same.

use std::fmt::Write;

/// Unicode's control and format characters, and its separators of lines and paragraphs (Cc, Cf, Zl,
/// Zp).
const UNSEEN: [(u32, u32); 23] = [
    (0x0, 0x1f),
    (0x7f, 0x9f),
    (0xad, 0xad),
    (0x600, 0x605),
    (0x61c, 0x61c),
    (0x6dd, 0x6dd),
    (0x70f, 0x70f),
    (0x890, 0x891),
    (0x8e2, 0x8e2),
    (0x180e, 0x180e),
    (0x200b, 0x200f),
    (0x2028, 0x202e),
    (0x2060, 0x2064),
    (0x2066, 0x206f),
    (0xfeff, 0xfeff),
    (0xfff9, 0xfffb),
    (0x110bd, 0x110bd),
    (0x110cd, 0x110cd),
    (0x13430, 0x1343f),
    (0x1bca0, 0x1bca3),
    (0x1d173, 0x1d17a),
    (0xe0001, 0xe0001),
    (0xe0020, 0xe007f),
];

/// Whether a terminal shows this character as itself, in its place.
pub fn is_seen(c: char) -> bool {
    let number = u32::from(c);
    // Most text is ASCII.
    if number < 0x7f { number >= 0x20 } else { !UNSEEN.iter().any(|&(from, to)| (from..=to).contains(&number)) }
}

/// Escapes a name or a text of unknown origin for one line of a terminal: invisible characters, and
/// bytes that are not UTF-8.
pub fn shown(bytes: impl AsRef<[u8]>) -> String {
    escaped(bytes.as_ref(), false)
}

/// A text of several lines, fit for a terminal: as [`shown`], but line breaks and tabs stay.
pub fn fit(text: &str) -> String {
    escaped(text.as_bytes(), true)
}

fn escaped(bytes: &[u8], lines: bool) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' | '\t' if lines => text.push(c),
                c if is_seen(c) => text.push(c),
                c => text.extend(c.escape_default()),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// A word as a shell reads it: pasted, it is this word and nothing else.
pub fn shell_word(word: impl AsRef<[u8]>) -> String {
    let bytes = word.as_ref();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-=:,%+@".contains(c);
    match str::from_utf8(bytes) {
        Ok(text) if !text.is_empty() && text.chars().all(is_plain) => text.to_owned(),
        Ok(text) if text.chars().all(is_seen) => format!("'{}'", text.replace('\'', "'\\''")),
        _ => format!("$'{}'", bytes.escape_ascii()),
    }
}

/// Makes a JSON text fit for a terminal without changing its meaning to a program: all invisible
/// characters are within strings.
pub fn json(text: &str) -> String {
    let mut fit = String::with_capacity(text.len());
    for c in text.chars() {
        if is_seen(c) || c == '\n' {
            fit.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(fit, "\\u{unit:04x}");
        }
    }
    fit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_on_its_line_and_is_no_order() {
        assert_eq!(shown("a b\u{fc}\u{4e2d}\\\"'"), "a b\u{fc}\u{4e2d}\\\"'");
        assert_eq!(shown("\n\r\t\u{1b}[2J"), "\\n\\r\\t\\u{1b}[2J");
        assert_eq!(shown("\u{9b}2J\u{202e}x\u{2028}\u{e0041}"), "\\u{9b}2J\\u{202e}x\\u{2028}\\u{e0041}");
        assert_eq!(shown(b"a\x9b\xffb\xc3"), "a\\x9b\\xffb\\xc3");
        assert_eq!(fit("a\n\tb\r\u{1b}"), "a\n\tb\\r\\u{1b}");
        assert_eq!(shown(shown("\n\u{1b}\\")), shown("\n\u{1b}\\"));
    }

    #[test]
    fn a_word_is_one_word_to_a_shell() {
        for (word, quoted) in [
            ("--allow", "--allow"),
            ("", "''"),
            ("a b", "'a b'"),
            ("@a $(touch${IFS}RAN):1", "'@a $(touch${IFS}RAN):1'"),
            ("it's", "'it'\\''s'"),
            ("~/x", "'~/x'"),
            ("a\nb'", "$'a\\nb\\''"),
            ("\u{202e}", "$'\\xe2\\x80\\xae'"),
        ] {
            assert_eq!(shell_word(word), quoted);
        }
        assert_eq!(shell_word(b"\xff!"), "$'\\xff!'");
    }

    #[test]
    fn json_stays_what_it_is() {
        assert_eq!(
            json("{\"a\":\"\u{9b}\u{202e}\u{e0041}\u{7f}\u{fc}\"}\n"),
            "{\"a\":\"\\u009b\\u202e\\udb40\\udc41\\u007f\u{fc}\"}\n"
        );
    }
}
