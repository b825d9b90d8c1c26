//! A grate's own options, which come before the name of the next program.
use std::ffi::c_char;

use crate::log::c;
use crate::raw::CText;
pub use crate::raw::Opt;

/// Calls the function of an option with a value. The text of an error is not
/// freed, since the grate exits then.
#[doc(hidden)]
pub fn value(text: &CText, set: fn(&str) -> Result<(), String>) -> *const c_char {
    let wrong = match std::str::from_utf8(text.bytes()) {
        Ok(text) => set(text).err(),
        Err(_) => Some("not UTF-8".to_owned()),
    };
    wrong.map_or(std::ptr::null(), |wrong| c(&wrong).into_raw())
}

/// The same for one without a value.
#[doc(hidden)]
pub fn flag(set: fn()) -> *const c_char {
    set();
    std::ptr::null()
}

/// Lists the options of a grate: letter, name, and for those with a value its name and what it is;
/// then the line of `--help` and the function that takes the value.
///
/// ```no_run
/// use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
///
/// use lind_grate::prelude::*;
///
/// static LIMIT: AtomicU32 = AtomicU32::new(100);
/// static QUIET: AtomicBool = AtomicBool::new(false);
///
/// fn set_limit(value: &str) -> std::result::Result<(), String> {
///     LIMIT.store(value.parse().map_err(|_| "not a number")?, Relaxed);
///     Ok(())
/// }
///
/// fn set_quiet() {
///     QUIET.store(true, Relaxed);
/// }
///
/// options!(static OPTIONS = {
///     'n' "limit" "NUMBER" value: set_limit, "how many are allowed (default: 100)";
///     'q' "quiet": set_quiet, "say nothing";
/// });
///
/// fn main() {
///     GrateBuilder::new("Counts.").options(&OPTIONS).run()
/// }
/// ```
///
/// The word behind the value's name is `value`, or says how the value names a file of the user's
/// (`reads`, `writes`, ...), which `lind-boot` opens: see `LIND_OPTION` in `lind/grate.h`, and
/// [`policy`](crate::policy).
#[macro_export]
macro_rules! options {
    ($(#[$attr:meta])* $vis:vis static $list:ident = {
        $($letter:literal $name:literal $($value:literal $what:ident)?: $set:path, $help:literal;)*
    }) => {
        $(#[$attr])*
        $vis static $list: [$crate::Opt; [$($name),*].len()] = [$({
            extern "C" fn lind_set_(text: $crate::private::CText) -> *const ::std::ffi::c_char {
                $crate::options!(@set text $set $(, $what)?)
            }
            $crate::Opt {
                letter: $letter as ::std::ffi::c_char,
                name: concat!($name, "\0").as_ptr().cast(),
                value: $crate::options!(@value $($value)?),
                help: concat!($help, "\0").as_ptr().cast(),
                set: lind_set_,
            }
        }),*];
        $($($crate::manifest_!("option ", $letter, " ", $name, " ", stringify!($what));)?)*
    };
    (@set $text:ident $set:path, $what:ident) => { $crate::private::value(&$text, $set) };
    (@set $text:ident $set:path) => {{ let _ = $text; $crate::private::flag($set) }};
    (@value $value:literal) => { concat!($value, "\0").as_ptr().cast() };
    (@value) => { ::std::ptr::null() };
}
