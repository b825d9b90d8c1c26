//! Files of volumes that got a set-user-ID or set-group-ID bit. Cages get no other rights by it,
//! but a user who executes the file at the host does: the user who started the run gets a message.

use std::os::fd::BorrowedFd;
use std::sync::Mutex;

use rustix::fs::{FileType, fstat};

use crate::lock::Locked;
use crate::root::Root;
use crate::text;

/// The set-user-ID and set-group-ID bits.
const BITS: u32 = 0o6000;

/// So many are named: more would only hide the first.
const NAMED: usize = 4;

/// The longest name that is reported, in bytes.
const LONGEST: usize = 256;

/// Files that have got such a bit and have not been reported yet.
#[derive(Default)]
pub struct SetIds(Mutex<Noted>);

#[derive(Default)]
struct Noted {
    names: Vec<Vec<u8>>,
    more: bool,
}

impl SetIds {
    /// Notes a file that was made with this mode, or got it, or a name; unless it has neither bit
    /// or lies outside all volumes.
    pub(crate) fn note(&self, root: &Root, file: BorrowedFd<'_>, mode: u32) {
        if mode & BITS == 0 || root.volumes().is_empty() {
            return;
        }
        // A file without a name is noted when it gets one.
        let counts = |stat: &rustix::fs::Stat| {
            stat.st_mode & BITS != 0 && FileType::from_raw_mode(stat.st_mode).is_file() && stat.st_nlink > 0
        };
        if fstat(file).is_ok_and(|stat| counts(&stat))
            && let Some(name) = root.name_in_volume(file)
        {
            self.0.locked().add(name);
        }
    }

    /// The line for the files noted since the last one.
    pub fn take(&self) -> Option<String> {
        let noted = std::mem::take(&mut *self.0.locked());
        let names: Vec<_> = noted.names.iter().map(text::shown).collect();
        let more = if noted.more { " and others (find -perm /6000)" } else { "" };
        (!names.is_empty()).then(|| {
            format!(
                "a set-user-ID or set-group-ID bit was set in a volume, where the host obeys it: {}{more}; to take it away: chmod ug-s FILE",
                names.join(", ")
            )
        })
    }
}

impl Noted {
    fn add(&mut self, mut name: Vec<u8>) {
        name.truncate(LONGEST);
        if self.names.contains(&name) {
            return;
        }
        if self.names.len() < NAMED {
            self.names.push(name);
        } else {
            self.more = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_are_named_once_and_fit_for_a_terminal() {
        let all = SetIds::default();
        assert_eq!(all.take(), None);
        for name in ["/p/a\n", "/p/a\n", "/p/b", "/p/c", "/p/d", "/p/e"] {
            all.0.locked().add(name.into());
        }
        let line = all.take().unwrap();
        assert!(line.contains("/p/b, /p/c, /p/d and others") && !line.contains('\n'), "{line}");
        assert_eq!(all.take(), None, "told once");
    }
}
