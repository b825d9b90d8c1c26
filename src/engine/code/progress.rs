//! How far the compiler is, for whoever waits. At a terminal that is a line on standard error from the second second on, gone when it is done;
//! elsewhere one line for each module that takes longer than two. And how long it has taken, which is nobody's time but the compiler's.
//!
//! The compiler's own clock for its passes counts the functions: it has to be told when each begins. A compiler in a process of its own
//! tells the one where the line is written.

use std::any::Any;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, OnceLock};
use std::time::{Duration, Instant};

use cranelift_codegen::timing::{Pass, Profiler, set_thread_profiler};
use lind_kernel::lock::{Locked, unpoisoned};
use lind_kernel::{stdio, text};
use wasmparser::{Parser, Payload};

/// How long somebody at a terminal waits before being told why.
const PATIENCE: Duration = Duration::from_secs(1);

/// And who reads lines, each of which stays.
const PATIENCE_WITH_LINES: Duration = Duration::from_secs(2);

/// The interval at which the line is updated.
const BEAT: Duration = Duration::from_millis(250);

/// The stack of the thread that writes it, in bytes.
const STACK: usize = 128 << 10;

/// The most of a name that is shown: a line that is wider than the terminal cannot be taken back.
const SHOWN: usize = 48;

/// Erases the line.
pub const BLANK: &str = "\r\x1b[K";

/// Functions whose compilation has begun since nothing was compiled.
static BEGUN: AtomicUsize = AtomicUsize::new(0);

static UNDER_WAY: Mutex<UnderWay> =
    Mutex::new(UnderWay { modules: Vec::new(), functions: 0, told: false, since: None, before: Duration::ZERO });

/// A module has been compiled, or the line is gone.
static CHANGED: Condvar = Condvar::new();

/// The modules that are being compiled at this moment.
struct UnderWay {
    modules: Vec<Named>,
    /// Of all modules, since nothing was compiled.
    functions: usize,
    /// Whether there is a thread that tells of it.
    told: bool,
    /// Since when something is compiled.
    since: Option<Instant>,
    /// How long something was compiled before that.
    before: Duration,
}

/// A module.
struct Named {
    name: String,
    began: Instant,
    /// Whether it is kept, so that this is the only time.
    once: bool,
    /// Whether there was a line about it.
    said: bool,
}

/// How long this process has had modules compiled.
pub fn spent() -> Duration {
    let under_way = UNDER_WAY.locked();
    under_way.before + under_way.since.map_or(Duration::ZERO, |since| since.elapsed())
}

/// Is told how many functions have begun, at each.
type Listener = Box<dyn Fn(usize) + Send + Sync>;

static LISTENER: OnceLock<Listener> = OnceLock::new();

/// Has `listener` told how far the compiler of this process is. The first one is.
pub fn tell_also(listener: Listener) {
    let _ = LISTENER.set(listener);
}

/// Gets a line about a module that takes long to compile.
type Reader = Box<dyn Fn(&str) + Send + Sync>;

static READER: OnceLock<Reader> = OnceLock::new();

/// Has `reader` get the lines, too, that are written where standard error is not a terminal. The first one does.
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
        // Of no size, so that nothing is allocated.
        Box::new(())
    }
}

/// Has the functions counted that this thread compiles.
pub fn count_here() {
    set_thread_profiler(Box::new(Count));
}

/// A module that is compiled as long as this lives.
pub struct Shown {
    name: String,
    /// The progress that another process reported.
    told: (usize, usize),
}

impl Shown {
    /// A module begins, of which this process compiles so many functions. `once`: what comes of it is kept. The thread that this may
    /// start has the caller's mask of signals.
    pub fn begin(name: &str, functions: usize, once: bool) -> Shown {
        let name = shortened(name);
        let mut under_way = UNDER_WAY.locked();
        under_way.modules.push(Named { name: name.clone(), began: Instant::now(), once, said: false });
        under_way.functions += functions;
        under_way.since.get_or_insert_with(Instant::now);
        if !under_way.told {
            let tell = if std::io::stderr().is_terminal() { show } else { tell };
            let thread = std::thread::Builder::new().name("progress".into()).stack_size(STACK);
            under_way.told = thread.spawn(tell).is_ok();
        }
        Shown { name, told: (0, 0) }
    }

    /// Another process has begun so many of the module's functions by now.
    pub fn told(&mut self, begun: usize, functions: usize) {
        let mut under_way = UNDER_WAY.locked();
        under_way.functions = under_way.functions.saturating_add(functions.saturating_sub(self.told.1));
        BEGUN.fetch_add(begun.saturating_sub(self.told.0), Ordering::Relaxed);
        self.told = (begun.max(self.told.0), functions.max(self.told.1));
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
            let still = |under_way: &mut UnderWay| under_way.told && under_way.modules.is_empty();
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
    under_way.told = false;
    CHANGED.notify_all();
}

/// A line for each module.
fn tell() {
    let mut under_way = UNDER_WAY.locked();
    loop {
        let waited = CHANGED.wait_timeout_while(under_way, BEAT, |under_way| !under_way.modules.is_empty());
        under_way = unpoisoned(waited).0;
        if under_way.modules.is_empty() {
            break;
        }
        let late = |module: &&mut Named| !module.said && module.began.elapsed() >= PATIENCE_WITH_LINES;
        for module in under_way.modules.iter_mut().filter(late) {
            module.said = true;
            let once = if module.once { ", once" } else { "" };
            let line = format!("compiling {}{once}", module.name);
            stdio::say_line(&line);
            if let Some(reader) = READER.get() {
                reader(&line);
            }
        }
    }
    under_way.told = false;
    CHANGED.notify_all();
}

fn line(modules: &[Named], begun: usize, functions: usize) -> String {
    let name = modules.first().map_or("", |module| &module.name);
    let others = if modules.len() > 1 { format!(" and {} more", modules.len() - 1) } else { String::new() };
    // A function that has begun is not done, and some are the engine's own.
    let percent = begun.saturating_mul(100).checked_div(functions).unwrap_or(0).min(99);
    format!("{BLANK}compiling {name}{others}: {percent} %")
}

/// A name without what a terminal could take for an order, and its end if it is long.
fn shortened(name: &str) -> String {
    let name: Vec<char> = text::shown(name).chars().collect();
    let (cut, rest) = name.split_at(name.len().saturating_sub(SHOWN));
    format!("{}{}", if cut.is_empty() { "" } else { "..." }, rest.iter().collect::<String>())
}

/// How many functions a module defines.
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
