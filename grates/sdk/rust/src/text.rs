//! Paths and strings of clients, as copies in the grate's memory.
#![allow(unsafe_code)]

use std::ffi::OsStr;
use std::mem::MaybeUninit;
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::{Arg, CageId, Errno, Result, cx};

/// The longest text with its NUL, as Linux's PATH_MAX.
const ROOM: usize = 4096;

/// A path or another string that a client passed: a copy, which the client cannot change any more.
///
/// It reads as a [`Path`]. Forwarding it sends the copy. Where the client passed NULL it is empty,
/// and forwards as NULL.
pub struct Text {
    bytes: [MaybeUninit<u8>; ROOM],
    length: usize,
    null: Option<CageId>,
}

impl Text {
    /// Room for a text.
    #[inline]
    pub(crate) fn new() -> Text {
        Text { bytes: [MaybeUninit::uninit(); ROOM], length: 0, null: None }
    }

    /// Copies the text that an argument points to. ENAMETOOLONG if it does not end within a path's
    /// length.
    #[inline]
    pub(crate) fn take(&mut self, arg: Arg) -> Result<&Text> {
        if arg.value == 0 {
            self.null = Some(arg.cage);
            return Ok(self);
        }
        // SAFETY: the kernel writes at most ROOM bytes to our own memory.
        self.length = unsafe { cx::copy_string(arg, self.bytes.as_mut_ptr().cast(), ROOM) }?;
        Ok(self)
    }

    /// A text of the grate's own, to forward in place of a client's. EINVAL if it has a NUL in it,
    /// ENAMETOOLONG if it is longer than a path may be.
    pub fn of(text: impl AsRef<OsStr>) -> Result<Box<Text>> {
        let from = text.as_ref().as_bytes();
        if from.contains(&0) {
            return Err(Errno::EINVAL);
        }
        if from.len() >= ROOM {
            return Err(Errno::ENAMETOOLONG);
        }
        let mut text = Box::new(Text::new());
        for (to, &byte) in text.bytes.iter_mut().zip(from.iter().chain([&0])) {
            to.write(byte);
        }
        text.length = from.len();
        Ok(text)
    }

    /// Whether the client passed NULL.
    pub fn is_null(&self) -> bool {
        self.null.is_some()
    }

    /// The bytes, without the NUL.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: `length` bytes were written.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr().cast(), self.length) }
    }

    /// The text where it is UTF-8, for messages otherwise with replacement characters.
    pub fn to_string_lossy(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(self.as_bytes())
    }

    /// The argument that forwards it.
    #[inline]
    pub(crate) fn arg(&self) -> Arg {
        match self.null {
            Some(cage) => Arg { value: 0, cage },
            None => Arg { value: self.bytes.as_ptr() as usize as u64, cage: cx::own_id() },
        }
    }
}

impl Deref for Text {
    type Target = Path;

    fn deref(&self) -> &Path {
        Path::new(OsStr::from_bytes(self.as_bytes()))
    }
}

impl std::fmt::Debug for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.is_null() { f.write_str("NULL") } else { std::fmt::Debug::fmt(&**self, f) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_our_own_reads_as_a_path() {
        let text = Text::of("/home/me/x").expect("no NUL in it");
        assert!(text.starts_with("/home/me"));
        assert_eq!(text.as_bytes(), b"/home/me/x");
        assert!(!text.is_null());
    }

    #[test]
    fn a_text_with_a_nul_or_too_long_is_refused() {
        assert_eq!(Text::of("a\0b").err(), Some(Errno::EINVAL));
        assert_eq!(Text::of("x".repeat(ROOM)).err(), Some(Errno::ENAMETOOLONG));
        assert_eq!(Text::of("x".repeat(ROOM - 1)).expect("fits").as_bytes().len(), ROOM - 1);
    }

    #[test]
    fn null_is_an_empty_text_that_forwards_as_null() {
        let mut text = Text::new();
        let text = text.take(Arg { value: 0, cage: CageId(7) }).expect("NULL is not read");
        assert_eq!((text.as_bytes(), text.arg()), (&b""[..], Arg { value: 0, cage: CageId(7) }));
    }
}
