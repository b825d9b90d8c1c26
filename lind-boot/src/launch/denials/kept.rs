//! The last denials of a session, numbered from 1, for clients that list or follow them. Commands
//! may make denied calls without end, so only so many are kept; a call that is denied again within
//! a second is counted with the one before.

use std::collections::{HashMap, VecDeque};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lind_kernel::denial::Denial;
use lind_kernel::lock::Locked;
use rustix::event::{EventfdFlags, eventfd};
use serde_json::Value;

use super::text::{described, key, line};

/// The most denials that are kept, and the most bytes of them.
const MOST: usize = 1024;
const BYTES: usize = 2 << 20;

/// The time in which the same denial is counted with the one before.
const AGAIN: Duration = Duration::from_secs(1);

/// The list.
pub struct Kept {
    list: Mutex<List>,
    /// Written to when a denial has come that somebody waits for.
    news: OwnedFd,
    awaited: AtomicBool,
}

#[derive(Default)]
struct List {
    all: VecDeque<Entry>,
    bytes: usize,
    /// The number of the last denial.
    last: u64,
    /// The calls that were denied to each command that runs.
    counts: HashMap<u32, u64>,
}

struct Entry {
    id: u64,
    key: String,
    command: Option<u32>,
    since: Instant,
    times: u64,
    object: Value,
    size: usize,
}

/// Some of the denials.
#[derive(Default, PartialEq, Eq, Debug)]
pub struct Part {
    /// Objects, the oldest first.
    pub denials: Vec<Value>,
    /// The number to go on behind.
    pub last: u64,
    /// How many before these are not kept any more, of all commands.
    pub lost: u64,
    /// Whether there are more.
    pub more: bool,
}

impl Kept {
    /// An empty list.
    ///
    /// # Errors
    /// The host's error.
    pub fn new() -> std::io::Result<Kept> {
        let news = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Kept { list: Mutex::default(), news, awaited: AtomicBool::new(false) })
    }

    /// Adds a denial to a command, if one of the session's commands made the call.
    pub fn add(&self, denial: &Denial, command: Option<u32>) {
        self.list.locked().add(denial, command, Instant::now());
        if self.awaited.swap(false, Ordering::SeqCst) {
            // A counter that is full can be read, too.
            let _ = rustix::io::write(&self.news, &1_u64.to_ne_bytes());
        }
    }

    /// Lets the file be readable when the next denial comes.
    pub fn await_next(&self) {
        let _ = rustix::io::read(&self.news, &mut [0; 8]);
        self.awaited.store(true, Ordering::SeqCst);
    }

    /// Up to `most` denials behind the number `after`, of all commands or of one.
    pub fn since(&self, after: u64, command: Option<u32>, most: usize) -> Part {
        self.list.locked().since(after, command, most)
    }

    /// How many calls were denied to a command and what it has started.
    pub fn count(&self, command: u32) -> u64 {
        self.list.locked().counts.get(&command).copied().unwrap_or(0)
    }

    /// Forgets the count of a command that has ended.
    pub fn forget(&self, command: u32) {
        self.list.locked().counts.remove(&command);
    }
}

impl AsFd for Kept {
    /// Readable when a denial has come since [`Kept::await_next`].
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.news.as_fd()
    }
}

impl List {
    fn add(&mut self, denial: &Denial, command: Option<u32>, now: Instant) {
        if let Some(command) = command {
            *self.counts.entry(command).or_default() += 1;
        }
        let key = key(denial);
        let same = |entry: &&mut Entry| entry.key == key && entry.command == command;
        let recent = self.all.iter_mut().rev().take_while(|entry| now.duration_since(entry.since) < AGAIN);
        if let Some(entry) = { recent }.find(same) {
            entry.times += 1;
            return;
        }
        self.last += 1;
        let mut object = described(denial);
        object["id"] = self.last.into();
        object["command"] = command.into();
        object["message"] = line(denial).into();
        let size = object.to_string().len();
        self.bytes += size;
        self.all.push_back(Entry { id: self.last, key, command, since: now, times: 1, object, size });
        while self.all.len() > MOST || self.bytes > BYTES {
            let Some(first) = self.all.pop_front() else { return };
            self.bytes -= first.size;
        }
    }

    fn since(&self, after: u64, command: Option<u32>, most: usize) -> Part {
        let first = self.all.front().map_or(self.last + 1, |entry| entry.id);
        let mut part = Part { last: self.last.max(after), lost: first.saturating_sub(after + 1), ..Part::default() };
        let skipped = usize::try_from((after + 1).saturating_sub(first)).unwrap_or(usize::MAX);
        let wanted = self.all.iter().skip(skipped).filter(|entry| command.is_none() || entry.command == command);
        for entry in wanted {
            if part.denials.len() == most {
                part.more = true;
                break;
            }
            let mut object = entry.object.clone();
            object["times"] = entry.times.into();
            part.denials.push(object);
            part.last = entry.id;
        }
        if !part.more {
            part.last = self.last.max(after);
        }
        part
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::denial;
    use super::*;
    use lind_abi::Errno;

    fn of(name: &str) -> Denial {
        denial("write_filter_grate", Some(Errno::EROFS), ["may not be changed", name, name])
    }

    fn names(part: &Part) -> Vec<(u64, &str)> {
        let name = |object: &'_ Value| (object["id"].as_u64().unwrap(), object["arguments"].as_str().unwrap().len());
        part.denials.iter().map(|object| (name(object).0, object["arguments"].as_str().unwrap())).collect()
    }

    #[test]
    fn denials_are_listed_by_number_and_command() {
        let (mut list, now) = (List::default(), Instant::now());
        for (name, command) in [("/a", Some(1)), ("/b", None), ("/c", Some(2)), ("/a", Some(1)), ("/a", Some(2))] {
            list.add(&of(name), command, now);
        }
        assert_eq!(names(&list.since(0, None, 9)), [(1, "/a"), (2, "/b"), (3, "/c"), (4, "/a")]);
        assert_eq!(list.since(0, None, 9).denials[0]["times"], 2);
        assert_eq!(names(&list.since(0, Some(2), 9)), [(3, "/c"), (4, "/a")]);
        let part = list.since(1, None, 2);
        assert_eq!((names(&part), part.last, part.more, part.lost), (vec![(2, "/b"), (3, "/c")], 3, true, 0));
        assert_eq!(list.since(4, None, 2), Part { last: 4, ..Part::default() });
        assert_eq!(list.since(u64::MAX - 1, None, 2).denials.len(), 0);
        assert_eq!((list.counts[&1], list.counts[&2]), (2, 2));
        list.add(&of("/a"), Some(1), now + AGAIN);
        assert_eq!(names(&list.since(4, None, 2)), [(5, "/a")]);
    }

    #[test]
    fn a_flood_is_bounded() {
        let (mut list, now) = (List::default(), Instant::now());
        for number in 0..3000 {
            list.add(&of(&format!("/{number}/{}", "\u{1}".repeat(500))), None, now);
        }
        assert!(list.bytes <= BYTES && list.all.len() <= MOST && list.all.len() > 100);
        let part = list.since(0, None, usize::MAX);
        assert_eq!((part.last, part.lost + part.denials.len() as u64, part.more), (3000, 3000, false));
    }

    #[test]
    fn who_waits_is_told() {
        let kept = Kept::new().unwrap();
        let is_ready = || rustix::io::read(&kept.news, &mut [0; 8]).is_ok();
        kept.add(&of("/a"), None);
        assert!(!is_ready());
        kept.await_next();
        kept.add(&of("/b"), None);
        kept.add(&of("/c"), None);
        assert!(is_ready() && !is_ready());
    }
}
