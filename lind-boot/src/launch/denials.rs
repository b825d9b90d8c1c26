//! Denied calls: for each a line on standard error that names the program and says what to do, a
//! JSON object for `--denials`, and counts for `--result`. `text.rs` makes the lines and objects,
//! and `hint.rs` the advice in them.

mod hint;
pub mod kept;
pub mod questions;
mod text;

use std::collections::HashSet;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::{Duration, Instant};

use kept::Kept;
use lind_abi::CageId;
use lind_kernel::denial::{Ask, Denial, Question};
use lind_kernel::lock::{Locked, unpoisoned};
use lind_kernel::{Kernel, stdio};
use questions::{Asked, Questions};
use text::{explanation, is_limit, key, line, object};

/// The most lines that are printed: programs may make denied calls in a loop, or make up names.
const LINES: usize = 100;

/// The most bytes of objects that are written: programs may make denied calls without end.
const OBJECTS: usize = 16 << 20;

/// The last object of a file that has no room for more.
const NO_ROOM: &str =
    "{\"more\":\"more calls were denied; they are not written, because the file has reached 16 MiB\"}\n";

/// The calls that were denied so far, and where they are reported.
#[derive(Default)]
pub struct Denials {
    count: AtomicU64,
    file: Option<Mutex<Objects>>,
    said: Mutex<HashSet<String>>,
    /// The limit for which programs were killed.
    ended_by: Mutex<Option<String>>,
    /// The commands of a session, and where each reports its denials.
    places: Mutex<Places>,
    /// Signalled when the cage of a command becomes known.
    known: Condvar,
    /// The last denials, if somebody may ask for them.
    kept: OnceLock<Kept>,
    /// The calls that wait for an answer, if any do.
    questions: OnceLock<Questions>,
}

/// The file for objects, and the room that is left in it.
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
        // An error of the file does not stop the command.
        let _ = self.file.write_all(if fits { object.as_bytes() } else { NO_ROOM.as_bytes() });
    }
}

#[derive(Default)]
struct Places {
    all: Vec<Place>,
    /// The number of cages that run, or are about to, whose ids are not known yet.
    expected: u32,
    /// Standard error of commands that are being started, by the command's number.
    starting: Vec<(u32, Arc<OwnedFd>)>,
}

/// A command of a session.
#[derive(Clone)]
struct Place {
    cage: CageId,
    command: u32,
    /// Its standard error, if that is not ours.
    file: Option<Arc<OwnedFd>>,
}

/// The longest time that a denial waits for its cage to become known.
const PLACE_WAIT: Duration = Duration::from_millis(500);

impl Denials {
    /// No denials yet; `file` gets an object for each.
    pub fn new(file: Option<File>) -> Arc<Denials> {
        let objects = file.map(|file| Mutex::new(Objects { file, room: OBJECTS }));
        Arc::new(Denials { file: objects, ..Denials::default() })
    }

    /// Reports the denials of `kernel` from now on.
    pub fn listen(self: &Arc<Self>, kernel: &Kernel) {
        let denials = Arc::clone(self);
        kernel.listen_to_denials(Box::new(move |kernel, denial| denials.hear(kernel, denial)));
    }

    /// Makes calls of `kernel` wait before they are denied.
    ///
    /// # Errors
    /// The host's error.
    pub fn hold(self: &Arc<Self>, kernel: &Kernel, name: &str, longest: Duration) -> std::io::Result<()> {
        let _ = self.questions.set(Questions::new(name, longest)?);
        kernel.ask_before_denials(Arc::clone(self) as Arc<dyn Ask>);
        Ok(())
    }

    /// The calls that wait, if calls do.
    pub fn questions(&self) -> Option<&Questions> {
        self.questions.get()
    }

    /// The number of denials.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// The limit for which programs were killed, if there was one.
    pub fn ended_by(&self) -> Option<String> {
        self.ended_by.locked().clone()
    }

    /// Notes that the cage of a command is about to start. [`Denials::started`] must follow, with
    /// the cage or without one.
    pub fn expect(&self, command: u32, place: Option<Arc<OwnedFd>>) {
        let mut places = self.places.locked();
        places.expected += 1;
        places.starting.extend(place.map(|place| (command, place)));
    }

    /// Prints why nothing happens, to the commands that are being started, or else to the only one
    /// that runs.
    pub fn explain_wait(&self, line: &str) {
        let at: Vec<_> = {
            let places = self.places.locked();
            let only = places.all.first().filter(|_| places.all.len() == 1).and_then(|place| place.file.as_ref());
            let starting = places.starting.iter().map(|(_, place)| place);
            starting.chain(only.filter(|_| places.starting.is_empty())).cloned().collect()
        };
        at.iter().for_each(|place| stdio::say_line_at(place, line));
    }

    /// Keeps the last denials from now on.
    ///
    /// # Errors
    /// The host's error.
    pub fn keep(&self) -> std::io::Result<()> {
        let _ = self.kept.set(Kept::new()?);
        Ok(())
    }

    /// The last denials, if they are kept.
    pub fn kept(&self) -> Option<&Kept> {
        self.kept.get()
    }

    /// From now on the denials of this cage and its descendants are the command's. None: it does
    /// not start.
    pub fn started(&self, command: u32, cage: Option<CageId>) {
        let mut places = self.places.locked();
        let at = places.starting.iter().position(|(other, _)| *other == command);
        let file = at.map(|at| places.starting.swap_remove(at).1);
        places.expected = places.expected.saturating_sub(1);
        places.all.extend(cage.map(|cage| Place { cage, command, file }));
        self.known.notify_all();
    }

    /// Forgets the cage of a command that has ended.
    pub fn forget(&self, cage: CageId) {
        self.places.locked().all.retain(|place| place.cage != cage);
    }

    fn hear(&self, kernel: &Kernel, denial: &Denial) {
        self.count.fetch_add(1, Ordering::Relaxed);
        if denial.error.is_none() && is_limit(denial) {
            self.ended_by.locked().get_or_insert_with(|| denial.subject.clone());
        }
        if let Some(objects) = &self.file {
            objects.locked().write(denial);
        }
        kernel.explain_denial(explanation(denial));
        let place = self.place(kernel, denial.client);
        if let Some(kept) = self.kept.get() {
            kept.add(denial, place.as_ref().map(|place| place.command));
        }
        let who = place.as_ref().map_or(0, |place| place.cage.0);
        let line = {
            let mut said = self.said.locked();
            if said.len() > LINES || !said.insert(format!("{who} {}", key(denial))) {
                return;
            }
            if said.len() > LINES { "more calls were denied; they are not printed".to_owned() } else { line(denial) }
        };
        match place.and_then(|place| place.file) {
            Some(file) => stdio::say_line_at(&file, &line),
            None => stdio::say_line(&line),
        }
    }

    fn place(&self, kernel: &Kernel, client: CageId) -> Option<Place> {
        let client = kernel.cages.get(client)?;
        let is_of = |cage: CageId| client.id == cage || client.descends_from(cage);
        let mut places = self.places.locked();
        let since = Instant::now();
        loop {
            let found = places.all.iter().find(|place| is_of(place.cage)).cloned();
            let left = PLACE_WAIT.saturating_sub(since.elapsed());
            if found.is_some() || places.expected == 0 || left.is_zero() {
                return found;
            }
            places = unpoisoned(self.known.wait_timeout(places, left)).0;
        }
    }
}

impl Ask for Denials {
    fn ask(&self, kernel: &Kernel, denial: &Denial) -> Option<Arc<Question>> {
        match self.questions.get()?.ask(kernel, denial) {
            Asked::No => None,
            Asked::Known(question) => Some(question),
            Asked::New(question, waits) => {
                let line = format!("{}; {waits}", line(denial));
                match self.place(kernel, denial.client).and_then(|place| place.file) {
                    Some(file) => stdio::say_line_at(&file, &line),
                    None => stdio::say_line(&line),
                }
                Some(question)
            }
        }
    }

    fn over(&self, question: &Arc<Question>) {
        if let Some(questions) = self.questions.get() {
            questions.over(question);
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
