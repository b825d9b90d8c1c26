//! What was refused: a line on standard error that names the program and says what to do, a JSON object for `--denials`, and
//! counts for `--result`. What the lines and objects say is in `text.rs`, and how to allow it in `hint.rs`.

mod hint;
mod text;

use std::collections::HashSet;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use lind_abi::CageId;
use lind_kernel::denial::Denial;
use lind_kernel::lock::{Locked, unpoisoned};
use lind_kernel::{Kernel, stdio};
use text::{is_limit, key, line, object};

/// How many different lines are printed: programs may be refused something in a loop, or make up names.
const LINES: usize = 100;

/// How much is written of objects, in bytes: a program may be refused something without end.
const OBJECTS: usize = 16 << 20;

/// The last object, where there was no more room.
const NO_ROOM: &str =
    "{\"more\":\"more calls were denied; they are not written, because the file has reached 16 MiB\"}\n";

/// What was refused so far.
#[derive(Default)]
pub struct Denials {
    count: AtomicU64,
    file: Option<Mutex<Objects>>,
    said: Mutex<HashSet<String>>,
    /// The limit that has ended programs.
    ended_by: Mutex<Option<String>>,
    /// Standard error of those who started cages, where it is not ours.
    places: Mutex<Places>,
    /// One of them has come to be known.
    known: Condvar,
}

/// Where objects are written, and how much room is left.
struct Objects {
    file: File,
    room: usize,
}

impl Objects {
    fn write(&mut self, denial: &Denial) {
        if self.room == 0 {
            return;
        }
        let object = object(denial);
        let fits = object.len() <= self.room;
        self.room = if fits { self.room - object.len() } else { 0 };
        // A file that cannot be written is no reason to stop the command.
        let _ = self.file.write_all(if fits { object.as_bytes() } else { NO_ROOM.as_bytes() });
    }
}

#[derive(Default)]
struct Places {
    all: Vec<(CageId, Arc<OwnedFd>)>,
    /// How many cages run, or are about to, of which it is not known yet which they are.
    expected: u32,
    /// Where those hear of what is theirs, by their command's number.
    starting: Vec<(u32, Arc<OwnedFd>)>,
}

/// How long a denial waits for its place to be known.
const PATIENCE: Duration = Duration::from_millis(500);

impl Denials {
    /// With a file for objects.
    pub fn new(file: Option<File>) -> Arc<Denials> {
        let objects = file.map(|file| Mutex::new(Objects { file, room: OBJECTS }));
        Arc::new(Denials { file: objects, ..Denials::default() })
    }

    /// Listens from now on.
    pub fn listen(self: &Arc<Self>, kernel: &Kernel) {
        let denials = Arc::clone(self);
        kernel.listen_to_denials(Box::new(move |kernel, denial| denials.hear(kernel, denial)));
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// The limit that has ended programs, if one has.
    pub fn ended_by(&self) -> Option<String> {
        self.ended_by.locked().clone()
    }

    /// The cage of a command is about to be started: [`Denials::started`] says which, or that there is none.
    pub fn expect(&self, command: u32, place: Option<Arc<OwnedFd>>) {
        let mut places = self.places.locked();
        places.expected += 1;
        places.starting.extend(place.map(|place| (command, place)));
    }

    /// Says why nothing happens: to the commands that are being started, or else to the one that there is.
    pub fn explain_wait(&self, line: &str) {
        let at: Vec<_> = {
            let places = self.places.locked();
            let only = places.all.first().filter(|_| places.all.len() == 1).map(|(_, place)| place);
            let starting = places.starting.iter().map(|(_, place)| place);
            starting.chain(only.filter(|_| places.starting.is_empty())).cloned().collect()
        };
        at.iter().for_each(|place| stdio::say_line_at(place, line));
    }

    /// What is refused to this cage and to those that come from it is said there.
    pub fn started(&self, command: u32, place: Option<(CageId, Arc<OwnedFd>)>) {
        let mut places = self.places.locked();
        places.starting.retain(|(other, _)| *other != command);
        places.expected = places.expected.saturating_sub(1);
        places.all.extend(place);
        self.known.notify_all();
    }

    /// It has ended.
    pub fn forget(&self, cage: CageId) {
        self.places.locked().all.retain(|(other, _)| *other != cage);
    }

    fn hear(&self, kernel: &Kernel, denial: &Denial) {
        self.count.fetch_add(1, Ordering::Relaxed);
        if denial.error.is_none() && is_limit(denial) {
            self.ended_by.locked().get_or_insert_with(|| denial.subject.clone());
        }
        if let Some(objects) = &self.file {
            objects.locked().write(denial);
        }
        let place = self.place(kernel, denial.client);
        let who = place.as_ref().map_or(0, |(cage, _)| cage.0);
        let line = {
            let mut said = self.said.locked();
            if said.len() > LINES || !said.insert(format!("{who} {}", key(denial))) {
                return;
            }
            if said.len() > LINES { "more calls were denied; they are not printed".to_owned() } else { line(denial) }
        };
        match place {
            Some((_, file)) => stdio::say_line_at(&file, &line),
            None => stdio::say_line(&line),
        }
    }

    fn place(&self, kernel: &Kernel, client: CageId) -> Option<(CageId, Arc<OwnedFd>)> {
        let client = kernel.cages.get(client)?;
        let is_of = |cage: CageId| client.id == cage || client.descends_from(cage);
        let mut places = self.places.locked();
        let since = Instant::now();
        loop {
            let found = places.all.iter().find(|(cage, _)| is_of(*cage)).cloned();
            let left = PATIENCE.saturating_sub(since.elapsed());
            if found.is_some() || places.expected == 0 || left.is_zero() {
                return found;
            }
            places = unpoisoned(self.known.wait_timeout(places, left)).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use lind_abi::Errno;

    use super::*;

    pub fn denial(grate: &str, error: Option<Errno>, [rule, what, subject]: [&str; 3]) -> Denial {
        let text = str::to_owned;
        let (grate, program, client) = (text(grate), text("bash"), CageId(7));
        let (rule, what, subject) = (text(rule), text(what), text(subject));
        Denial { grate, client, program, number: 42, error, rule, what, subject }
    }

    #[test]
    fn objects_are_bounded_and_the_last_says_so() {
        let mut file = tempfile::tempfile().unwrap();
        let mut objects = Objects { file: file.try_clone().unwrap(), room: 60_000 };
        let long = format!("/{}", "\u{1}".repeat(3800));
        let refused = denial("write_filter_grate", Some(Errno::EROFS), ["may not be changed", &long, &long]);
        for _ in 0..1000 {
            objects.write(&refused);
        }
        let mut text = String::new();
        std::io::Seek::rewind(&mut file).unwrap();
        file.read_to_string(&mut text).unwrap();
        assert!(text.len() < 60_000 + NO_ROOM.len() && text.ends_with(NO_ROOM) && text.matches(NO_ROOM).count() == 1);
        let first: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        assert!(first["arguments"].as_str().unwrap().contains(" bytes left out]"), "{first}");
    }
}
