//! What was refused, for whoever started the command: a line on standard error that names the program and says how to allow it,
//! a JSON object for `--denials`, and counts for `--result`.

use std::collections::HashSet;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use lind_abi::CageId;
use lind_kernel::cage::is_grate_name;
use lind_kernel::denial::Denial;
use lind_kernel::lock::{Locked, unpoisoned};
use lind_kernel::{Kernel, stdio};
use serde_json::{Value, json};

/// How many different lines are printed: programs may be refused something in a loop, or make up names.
const LINES: usize = 100;

/// How many objects are written.
const OBJECTS: u64 = 100_000;

/// What was refused so far.
#[derive(Default)]
pub struct Denials {
    count: AtomicU64,
    file: Option<Mutex<File>>,
    said: Mutex<HashSet<String>>,
    /// The limit that has ended programs.
    ended_by: Mutex<Option<String>>,
    /// Standard error of those who started cages, where it is not ours.
    places: Mutex<Places>,
    /// One of them has come to be known.
    known: Condvar,
}

#[derive(Default)]
struct Places {
    all: Vec<(CageId, Arc<OwnedFd>)>,
    /// How many cages run, or are about to, of which it is not known yet which they are.
    expected: u32,
}

/// How long a denial waits for its place to be known.
const PATIENCE: Duration = Duration::from_millis(500);

impl Denials {
    /// With a file for objects.
    pub fn new(file: Option<File>) -> Arc<Denials> {
        Arc::new(Denials { file: file.map(Mutex::new), ..Denials::default() })
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

    /// A cage is about to be started: [`Denials::started`] says which, or that there is none.
    pub fn expect(&self) {
        self.places.locked().expected += 1;
    }

    /// What is refused to this cage and to those that come from it is said there.
    pub fn started(&self, place: Option<(CageId, Arc<OwnedFd>)>) {
        let mut places = self.places.locked();
        places.expected = places.expected.saturating_sub(1);
        places.all.extend(place);
        self.known.notify_all();
    }

    /// It has ended.
    pub fn forget(&self, cage: CageId) {
        self.places.locked().all.retain(|(other, _)| *other != cage);
    }

    fn hear(&self, kernel: &Kernel, denial: &Denial) {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        if denial.error.is_none() && is_limit(denial) {
            self.ended_by.locked().get_or_insert_with(|| denial.subject.clone());
        }
        if let Some(file) = self.file.as_ref().filter(|_| number < OBJECTS) {
            // Nobody is left to be told.
            let _ = file.locked().write_all(format!("{}\n", object(denial)).as_bytes());
        }
        let place = self.place(kernel, denial.client);
        let who = place.as_ref().map_or(0, |(cage, _)| cage.0);
        let line = {
            let mut said = self.said.locked();
            if said.len() > LINES || !said.insert(format!("{who} {}", key(denial))) {
                return;
            }
            if said.len() > LINES { "lind-boot: more was denied: no further lines\n".to_owned() } else { line(denial) }
        };
        match place {
            Some((_, file)) => stdio::say_at(&file, &line),
            None => stdio::say(&line),
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

/// What makes two denials the same to people. A limit of all programs is reached once, whoever comes to it.
fn key(denial: &Denial) -> String {
    if is_limit(denial) {
        return format!("{} {}", denial.grate, denial.rule);
    }
    format!("{} {} {} {} {}", denial.grate, denial.program, denial.number, denial.rule, denial.what)
}

fn line(denial: &Denial) -> String {
    let call = call(denial).map(|call| format!("{call} ")).unwrap_or_default();
    let what = plain(&denial.what);
    // What a grate says of itself need not be said twice.
    let call = if denial.what.starts_with(call.trim_end()) { "" } else { &call };
    let end = denial.error.map_or_else(|| "all are killed".to_owned(), |errno| format!("{errno}"));
    let how = hint(denial).map(|hint| format!("; to allow it: {hint}")).unwrap_or_default();
    // A limit that the line of grates does not fit into is none of a program's.
    let in_front = is_limit(denial) && is_grate_name(denial.program.as_bytes());
    let program = if in_front { "the sandbox itself".to_owned() } else { plain(&denial.program) };
    let rule = plain(&denial.rule);
    let why = if is_limit(denial) { format!("{rule}: {what}") } else { format!("{call}{what}: {rule}") };
    format!("lind-boot: denied: {program} ({}): {why}: {end}{how}\n", denial.client.0)
}

/// Without what a terminal would act on.
fn plain(text: &str) -> String {
    let shown = |c: char| if matches!(c, '"' | '\'' | '\\') { c.to_string() } else { c.escape_debug().to_string() };
    text.chars().map(shown).collect()
}

fn object(denial: &Denial) -> Value {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    json!({
        "time": time, "grate": grate(denial), "rule": denial.rule, "call": call(denial), "arguments": denial.what,
        "error": denial.error.map(|errno| errno.to_string()), "program": denial.program, "cage": denial.client.0,
        "hint": hint(denial),
    })
}

fn is_limit(denial: &Denial) -> bool {
    denial.rule.starts_with("limit ")
}

fn grate(denial: &Denial) -> &str {
    denial.grate.strip_suffix("_grate").unwrap_or(&denial.grate)
}

fn call(denial: &Denial) -> Option<String> {
    let number = u32::try_from(denial.number).ok().filter(|_| denial.error.is_some())?;
    lind_abi::syscall(number).filter(|_| !is_limit(denial)).map(|row| row.name.to_owned())
}

/// Whether a call with paths is one that changes files.
fn may_change(denial: &Denial) -> bool {
    use lind_abi::paths::{FILE_USES, effect};
    const CHANGES: u16 = effect::WRITE | effect::CREATE | effect::REMOVE | effect::META | effect::LINK;
    let name = call(denial);
    let Some(used) = FILE_USES.iter().find(|used| Some(used.name) == name.as_deref()) else { return false };
    let opens = used.paths.iter().any(|path| path.effect & effect::OPEN != 0);
    let to_change = opens && ["O_WRONLY", "O_RDWR", "O_CREAT"].iter().any(|flag| denial.what.contains(flag));
    to_change || used.paths.iter().any(|path| path.effect & CHANGES != 0)
}

/// What the write filter says before a name that is protected in any directory.
const ANY: &str = ", as any ";

/// What the user of `lind-boot run` would add.
fn hint(denial: &Denial) -> Option<String> {
    let subject = &denial.subject;
    match grate(denial) {
        "net" if subject.contains(':') && denial.what.starts_with("connect ") => Some(format!("--allow {subject}")),
        "net" if is_place(subject) && ["listen ", "bind "].iter().any(|verb| denial.what.starts_with(verb)) => {
            Some(format!("--allow 'in {}'", listening(subject)))
        }
        // What a program does before it asks for the address of a name.
        "net" if denial.what.starts_with("bind udp ") => {
            Some("name who is to be reached, as in --allow example.org:443".into())
        }
        "net" => Some("--network host".into()),
        "write_filter" if denial.rule.starts_with("not among") => {
            Some(format!("{subject:?} among `write` of the policy"))
        }
        "write_filter" if denial.rule.contains(ANY) => {
            let name = denial.rule.split_once(ANY)?.1;
            // As a shell takes it, whatever a program has made up.
            let plain = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
            name.chars().all(plain).then(|| format!("--allow-name {name}"))
        }
        "write_filter" => Some("a policy of your own without it in `protect` (--policy FILE)".into()),
        "resource" => {
            let limit = if subject.starts_with("write") { "disk" } else { subject };
            Some(match limit {
                "threads" => "more `threads` among the limits of the policy".into(),
                limit => format!("a larger --{limit}"),
            })
        }
        "seccomp" => Some(match (denial.rule.as_str(), call(denial)) {
            ("not among the files", _) => {
                let list = if may_change(denial) { "write" } else { "read" };
                format!("{subject:?} among `{list}` of the policy")
            }
            ("not among the programs", _) => format!("{subject:?} among `programs` of the policy"),
            (_, Some(call)) => format!("{call} among `calls` of the policy"),
            (_, None) => return None,
        }),
        _ => None,
    }
}

/// Whether somebody could be waited for there: any port is none in particular.
fn is_place(subject: &str) -> bool {
    subject.starts_with("unix:") || subject.rsplit_once(':').is_some_and(|(_, port)| port != "0")
}

/// ADDRESS:PORT, or a name in the tree of files, as a rule of the net grate has it.
fn listening(subject: &str) -> String {
    match subject.rsplit_once(':') {
        Some((host, port)) if !subject.starts_with("unix:") => {
            format!("{} {port}", host.trim_start_matches('[').trim_end_matches(']'))
        }
        _ => subject.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lind_abi::Errno;

    fn denial(grate: &str, error: Option<Errno>, [rule, what, subject]: [&str; 3]) -> Denial {
        let text = str::to_owned;
        let (grate, program, client) = (text(grate), text("bash"), CageId(7));
        let (rule, what, subject) = (text(rule), text(what), text(subject));
        Denial { grate, client, program, number: 42, error, rule, what, subject }
    }

    #[test]
    fn lines_name_the_program_and_the_way_out() {
        let texts = ["no rule allows it", "connect tcp 10.0.0.1:22", "10.0.0.1:22"];
        let net = denial("net_grate", Some(Errno::EACCES), texts);
        let text = line(&net);
        assert!(
            text.starts_with("lind-boot: denied: bash (7): connect tcp 10.0.0.1:22: no rule allows it: "),
            "{text}"
        );
        assert!(text.ends_with("; to allow it: --allow 10.0.0.1:22\n"), "{text}");
        let limit = denial("resource_grate", None, ["limit cpu", "1s of 1s used", "cpu"]);
        assert_eq!(
            line(&limit),
            "lind-boot: denied: bash (7): limit cpu: 1s of 1s used: all are killed; to allow it: a larger --cpu\n"
        );
        let hostile = denial("write_filter_grate", Some(Errno::EROFS), ["may not be changed", "/a\n\u{1b}[2J", "/a"]);
        assert_eq!(line(&hostile).matches(['\n', '\u{1b}']).count(), 1);
    }

    #[test]
    fn hints_name_the_list() {
        let hint_of = |name: &str, what: &str| {
            let number = lind_abi::syscall_named(name).unwrap().nr.into();
            let texts = ["not among the files", what, "/f"];
            hint(&Denial { number, ..denial("seccomp_grate", Some(Errno::EACCES), texts) }).unwrap()
        };
        assert_eq!(hint_of("open", "open(\"/f\", O_RDONLY)"), "\"/f\" among `read` of the policy");
        assert_eq!(hint_of("open", "open(\"/f\", O_WRONLY|O_CREAT)"), "\"/f\" among `write` of the policy");
        assert_eq!(hint_of("unlink", "unlink(\"/f\")"), "\"/f\" among `write` of the policy");
        assert_eq!(hint_of("stat", "stat(\"/f\")"), "\"/f\" among `read` of the policy");
    }

    #[test]
    fn a_limit_is_reached_once() {
        let of = |client| Denial {
            client: CageId(client),
            ..denial("resource_grate", None, ["limit cpu", &format!("{client}"), "cpu"])
        };
        assert_eq!(key(&of(1)), key(&of(2)));
    }
}
