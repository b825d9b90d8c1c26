//! How far the compiler is, for whoever waits at a terminal: a line on standard error from the second second on, gone when it is done.
//!
//! The compiler's own clock for its passes counts the functions: it has to be told when each begins. A compiler in a process of its own
//! tells the one where the line is written.

use std::any::Any;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, OnceLock};
use std::time::Duration;

use cranelift_codegen::timing::{Pass, Profiler, set_thread_profiler};
use lind_kernel::lock::{Locked, unpoisoned};
use lind_kernel::stdio;
use wasmparser::{Parser, Payload};

/// How long somebody waits before being told why.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often the line is written anew.
const BEAT: Duration = Duration::from_millis(250);

/// The stack of the thread that writes it, in bytes.
const STACK: usize = 128 << 10;

/// The most of a name that is shown: a line that is wider than the terminal cannot be taken back.
const SHOWN: usize = 48;

/// What takes the line back.
pub const BLANK: &str = "\r\x1b[K";

/// Functions whose compilation has begun since nothing was compiled.
static BEGUN: AtomicUsize = AtomicUsize::new(0);

static UNDER_WAY: Mutex<UnderWay> = Mutex::new(UnderWay { modules: Vec::new(), functions: 0, told: false });

/// A module has been compiled, or the line is gone.
static CHANGED: Condvar = Condvar::new();

/// What is compiled at this moment.
struct UnderWay {
    modules: Vec<String>,
    /// Of all modules, since nothing was compiled.
    functions: usize,
    /// Whether there is a thread that tells of it.
    told: bool,
}

/// Is told how many functions have begun, at each.
type Listener = Box<dyn Fn(usize) + Send + Sync>;

static LISTENER: OnceLock<Listener> = OnceLock::new();

/// Has `listener` told how far the compiler of this process is. The first one is.
pub fn tell_also(listener: Listener) {
    let _ = LISTENER.set(listener);
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
pub struct Shown(Option<Seen>);

/// One that somebody sees.
struct Seen {
    name: String,
    /// What another process has told of it.
    told: (usize, usize),
}

impl Shown {
    /// A module begins, of which this process compiles so many functions. Where nobody sees it, that costs nothing. The thread that this may
    /// start has the caller's mask of signals.
    pub fn begin(name: &str, functions: usize) -> Shown {
        if !std::io::stderr().is_terminal() {
            return Shown(None);
        }
        let name = shortened(name);
        let mut under_way = UNDER_WAY.locked();
        under_way.modules.push(name.clone());
        under_way.functions += functions;
        if !under_way.told {
            let thread = std::thread::Builder::new().name("progress".into()).stack_size(STACK);
            under_way.told = thread.spawn(tell).is_ok();
        }
        Shown(Some(Seen { name, told: (0, 0) }))
    }

    /// Another process has begun so many of the module's functions by now.
    pub fn told(&mut self, begun: usize, functions: usize) {
        let Some(seen) = &mut self.0 else { return };
        let mut under_way = UNDER_WAY.locked();
        under_way.functions = under_way.functions.saturating_add(functions.saturating_sub(seen.told.1));
        BEGUN.fetch_add(begun.saturating_sub(seen.told.0), Ordering::Relaxed);
        seen.told = (begun.max(seen.told.0), functions.max(seen.told.1));
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        let Some(seen) = &self.0 else { return };
        let mut under_way = UNDER_WAY.locked();
        if let Some(at) = under_way.modules.iter().position(|other| *other == seen.name) {
            under_way.modules.remove(at);
        }
        if under_way.modules.is_empty() {
            under_way.functions = 0;
            BEGUN.store(0, Ordering::Relaxed);
            CHANGED.notify_all();
            // What comes now may write to the terminal.
            let still = |under_way: &mut UnderWay| under_way.told && under_way.modules.is_empty();
            drop(unpoisoned(CHANGED.wait_while(under_way, still)));
        }
    }
}

fn tell() {
    let (mut under_way, mut patience, mut shown) = (UNDER_WAY.locked(), PATIENCE, false);
    loop {
        let waited = CHANGED.wait_timeout_while(under_way, patience, |under_way| !under_way.modules.is_empty());
        under_way = unpoisoned(waited).0;
        if under_way.modules.is_empty() {
            break;
        }
        stdio::say(&line(&under_way.modules, BEGUN.load(Ordering::Relaxed), under_way.functions));
        (patience, shown) = (BEAT, true);
    }
    if shown {
        stdio::say(BLANK);
    }
    under_way.told = false;
    CHANGED.notify_all();
}

fn line(modules: &[String], begun: usize, functions: usize) -> String {
    let name = modules.first().map_or("", String::as_str);
    let others = if modules.len() > 1 { format!(" and {} more", modules.len() - 1) } else { String::new() };
    // A function that has begun is not done, and some are the engine's own.
    let percent = begun.saturating_mul(100).checked_div(functions).unwrap_or(0).min(99);
    format!("{BLANK}compiling {name}{others}: {percent} %")
}

/// A name without what a terminal could take for an order, and its end if it is long.
fn shortened(name: &str) -> String {
    let name: Vec<char> = name.escape_debug().collect();
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
        let modules = ["/bin/python".to_owned(), "/bin/git".to_owned()];
        assert_eq!(line(&modules[..1], 42, 100), format!("{BLANK}compiling /bin/python: 42 %"));
        assert_eq!(line(&modules, 300, 100), format!("{BLANK}compiling /bin/python and 1 more: 99 %"));
        assert_eq!(line(&[], 0, 0), format!("{BLANK}compiling : 0 %"));
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
