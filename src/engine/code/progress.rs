//! Shows the progress of the compiler to a waiting user. At a terminal that is a line on standard
//! error from the second second on, erased when it is done; elsewhere one line for each module that
//! takes longer than two. It also measures how long compiling has taken, which does not count as
//! the command's time.
//!
//! The compiler's own clock for its passes counts the functions: it is called when each begins. A
//! compiler in a process of its own reports to the process that writes the line.

use std::any::Any;
use std::collections::HashSet;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, OnceLock};
use std::time::{Duration, Instant};

use cranelift_codegen::timing::{Pass, Profiler, set_thread_profiler};
use lind_kernel::lock::{Locked, unpoisoned};
use lind_kernel::{stdio, text};
use wasmparser::{Parser, Payload};

/// How long a user at a terminal waits before the line appears.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long a reader of lines waits, each of which stays.
const PATIENCE_WITH_LINES: Duration = Duration::from_secs(2);

/// The interval at which the line is updated.
const BEAT: Duration = Duration::from_millis(250);

/// The stack of the thread that writes it, in bytes.
const STACK: usize = 128 << 10;

/// The most characters of a name that are shown: a line wider than the terminal cannot be erased.
const SHOWN: usize = 48;

/// Erases the line.
pub const BLANK: &str = "\r\x1b[K";

/// Functions whose compilation has begun since nothing was compiled.
static BEGUN: AtomicUsize = AtomicUsize::new(0);

static UNDER_WAY: Mutex<UnderWay> = Mutex::new(UnderWay {
    modules: Vec::new(),
    functions: 0,
    has_reporter: false,
    since: None,
    before: Duration::ZERO,
});

/// Signalled when a module has been compiled, or the line is gone.
static CHANGED: Condvar = Condvar::new();

/// The modules that are being compiled at this moment.
struct UnderWay {
    modules: Vec<Named>,
    /// The functions of all modules, since nothing was compiled.
    functions: usize,
    /// Whether a thread shows the progress.
    has_reporter: bool,
    /// The time since when something has been compiled.
    since: Option<Instant>,
    /// The time that was spent compiling before that.
    before: Duration,
}

/// A module that is being compiled.
struct Named {
    name: String,
    began: Instant,
    /// Whether the code is kept, so that this is the only time.
    once: bool,
    /// Whether a line was written about it.
    said: bool,
}

/// The time that this process has spent waiting for the compiler.
pub fn spent() -> Duration {
    let under_way = UNDER_WAY.locked();
    under_way.before + under_way.since.map_or(Duration::ZERO, |since| since.elapsed())
}

/// Called with the number of functions that have begun, at each.
type Listener = Box<dyn Fn(usize) + Send + Sync>;

static LISTENER: OnceLock<Listener> = OnceLock::new();

/// Reports the progress of this process's compiler to `listener`, too. Only the first listener
/// counts.
pub fn tell_also(listener: Listener) {
    let _ = LISTENER.set(listener);
}

/// Called with the line about a module that takes long to compile.
type Reader = Box<dyn Fn(&str) + Send + Sync>;

static READER: OnceLock<Reader> = OnceLock::new();

/// Passes the lines that are written where standard error is not a terminal to `reader`, too. Only
/// the first reader counts.
pub fn show_also(reader: Reader) {
    let _ = READER.set(reader);
}

struct Count;

impl Profiler for Count {
    fn start_pass(&self, pass: Pass) -> Box<dyn Any> {
        if pass == Pass::wasm_translate_function {
            let begun = BEGUN.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
            if let Some(listener) = LISTENER.get() {
                listener(begun);
            }
        }
        // A value without a size, so that nothing is allocated.
        Box::new(())
    }
}

/// Counts the functions that this thread compiles.
pub fn count_here() {
    set_thread_profiler(Box::new(Count));
}

/// Shows that a module is being compiled, as long as it lives.
pub struct Shown {
    name: String,
    /// The progress that another process reported.
    reported: (usize, usize),
}

impl Shown {
    /// A module begins, of which this process compiles so many functions. `once`: the code is kept.
    /// The thread that this may start has the caller's mask of signals.
    pub fn begin(name: &str, functions: usize, once: bool) -> Shown {
        let name = shortened(name);
        let mut under_way = UNDER_WAY.locked();
        under_way.modules.push(Named { name: name.clone(), began: Instant::now(), once, said: false });
        under_way.functions += functions;
        under_way.since.get_or_insert_with(Instant::now);
        if !under_way.has_reporter {
            let tell = if std::io::stderr().is_terminal() { show } else { tell };
            let thread = std::thread::Builder::new().name("progress".into()).stack_size(STACK);
            under_way.has_reporter = thread.spawn(tell).is_ok();
        }
        Shown { name, reported: (0, 0) }
    }

    /// Another process has begun so many of the module's functions by now.
    pub fn report(&mut self, begun: usize, functions: usize) {
        let mut under_way = UNDER_WAY.locked();
        under_way.functions = under_way.functions.saturating_add(functions.saturating_sub(self.reported.1));
        BEGUN.fetch_add(begun.saturating_sub(self.reported.0), Ordering::Relaxed);
        self.reported = (begun.max(self.reported.0), functions.max(self.reported.1));
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        let mut under_way = UNDER_WAY.locked();
        if let Some(at) = under_way.modules.iter().position(|other| other.name == self.name) {
            under_way.modules.remove(at);
        }
        if under_way.modules.is_empty() {
            under_way.functions = 0;
            let took = under_way.since.take().map_or(Duration::ZERO, |since| since.elapsed());
            under_way.before += took;
            BEGUN.store(0, Ordering::Relaxed);
            CHANGED.notify_all();
            // From here on the caller may write to the terminal.
            let still = |under_way: &mut UnderWay| under_way.has_reporter && under_way.modules.is_empty();
            drop(unpoisoned(CHANGED.wait_while(under_way, still)));
        }
    }
}

/// Shows one line and updates it all the time.
fn show() {
    let (mut under_way, mut patience, mut shown) = (UNDER_WAY.locked(), PATIENCE, false);
    loop {
        let waited = CHANGED.wait_timeout_while(under_way, patience, |under_way| !under_way.modules.is_empty());
        under_way = unpoisoned(waited).0;
        if under_way.modules.is_empty() {
            break;
        }
        stdio::say_as_it_is(&line(&under_way.modules, BEGUN.load(Ordering::Relaxed), under_way.functions));
        (patience, shown) = (BEAT, true);
    }
    if shown {
        stdio::say_as_it_is(BLANK);
    }
    under_way.has_reporter = false;
    CHANGED.notify_all();
}

/// Writes a line for each module.
fn tell() {
    let mut under_way = UNDER_WAY.locked();
    loop {
        let waited = CHANGED.wait_timeout_while(under_way, BEAT, |under_way| !under_way.modules.is_empty());
        under_way = unpoisoned(waited).0;
        if under_way.modules.is_empty() {
            break;
        }
        let names = under_way.modules.iter().filter(|module| module.said).map(|module| module.name.clone());
        let mut said: HashSet<String> = names.collect();
        let late = |module: &&mut Named| !module.said && module.began.elapsed() >= PATIENCE_WITH_LINES;
        for module in under_way.modules.iter_mut().filter(late) {
            module.said = true;
            let once = if module.once { ", once" } else { "" };
            let line = format!("compiling {}{once}", module.name);
            // Two may wait for one module.
            if said.insert(module.name.clone()) {
                stdio::say_line(&line);
            }
            if let Some(reader) = READER.get() {
                reader(&line);
            }
        }
    }
    under_way.has_reporter = false;
    CHANGED.notify_all();
}

fn line(modules: &[Named], begun: usize, functions: usize) -> String {
    let name = modules.first().map_or("", |module| &module.name);
    let different = modules.iter().map(|module| &module.name).collect::<HashSet<_>>().len();
    let others = if different > 1 { format!(" and {} more", different - 1) } else { String::new() };
    // A function that has begun has not ended, and some are the engine's own.
    let percent = begun.saturating_mul(100).checked_div(functions).unwrap_or(0).min(99);
    format!("{BLANK}compiling {name}{others}: {percent} %")
}

/// A name without control sequences for a terminal; of a long one the end.
fn shortened(name: &str) -> String {
    let name: Vec<char> = text::shown(name).chars().collect();
    let (cut, rest) = name.split_at(name.len().saturating_sub(SHOWN));
    format!("{}{}", if cut.is_empty() { "" } else { "..." }, rest.iter().collect::<String>())
}

/// The number of functions that a module defines.
pub fn functions(wasm: &[u8]) -> usize {
    let count = Parser::new(0).parse_all(wasm).find_map(|payload| match payload {
        Ok(Payload::CodeSectionStart { count, .. }) => Some(count),
        _ => None,
    });
    count.and_then(|count| usize::try_from(count).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_which_and_how_far() {
        let module = |name: &str| Named { name: name.to_owned(), began: Instant::now(), once: true, said: false };
        let modules = ["/bin/python", "/bin/git"].map(module);
        assert_eq!(line(&modules[..1], 42, 100), format!("{BLANK}compiling /bin/python: 42 %"));
        assert_eq!(line(&modules, 300, 100), format!("{BLANK}compiling /bin/python and 1 more: 99 %"));
        assert_eq!(line(&[], 0, 0), format!("{BLANK}compiling : 0 %"));
        let waited_for_twice = ["/bin/git", "/bin/git"].map(module);
        assert_eq!(line(&waited_for_twice, 42, 100), format!("{BLANK}compiling /bin/git: 42 %"));
    }

    #[test]
    fn the_time_that_modules_take_together_is_known() {
        let before = spent();
        let (one, other) = (Shown::begin("/bin/one", 1, true), Shown::begin("/bin/other", 1, true));
        std::thread::sleep(Duration::from_millis(20));
        drop(one);
        assert!(spent() - before >= Duration::from_millis(20));
        drop(other);
        let after = spent();
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(spent(), after);
    }

    #[test]
    fn a_name_orders_a_terminal_nothing() {
        assert_eq!(shortened("/bin/a\x1b[2J\n"), "/bin/a\\u{1b}[2J\\n");
        let long = shortened(&"x".repeat(200));
        assert!(long.starts_with("...x") && long.len() == SHOWN + 3, "{long}");
    }

    #[test]
    fn functions_are_those_with_code() {
        let wasm = wat::parse_str("(module (import \"a\" \"b\" (func)) (func) (func))").unwrap();
        assert_eq!((functions(&wasm), functions(b"no module")), (2, 0));
    }
}
