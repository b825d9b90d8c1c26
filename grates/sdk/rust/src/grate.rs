//! Puts a grate together and runs it.
#![allow(unsafe_code)]

use std::ffi::CString;
#[cfg(target_arch = "wasm32")]
use std::ffi::{c_char, c_int};

use crate::log::{c, die};
use crate::options::Opt;
#[cfg(target_arch = "wasm32")]
use crate::raw;
use crate::raw::Handler;
use crate::{Client, Clients, Guard};

/// A grate before it runs.
///
/// ```no_run
/// use lind_grate::prelude::*;
///
/// fn on_getpid(cx: &Cx) -> Result<Reply> {
///     log("somebody asks who it is");
///     cx.pass()
/// }
///
/// calls!(static CALLS = { observes getpid: on_getpid });
///
/// fn main() {
///     GrateBuilder::new("Says who asks.")
///         .calls(&CALLS)
///         .teardown(|status| log(&format!("the program ended with {status}")))
///         .run()
/// }
/// ```
#[must_use = "it runs nothing before `run`"]
pub struct GrateBuilder {
    about: CString,
    handlers: Vec<Handler>,
    options: &'static [Opt],
    guard: Option<&'static Guard>,
    ready: Option<Box<dyn FnOnce() -> Result<(), String>>>,
    teardown: Option<Box<dyn FnOnce(i32)>>,
}

impl GrateBuilder {
    /// A grate that handles nothing yet. `about` is the first line of its `--help`.
    pub fn new(about: &str) -> GrateBuilder {
        GrateBuilder { about: c(about), handlers: Vec::new(), options: &[], guard: None, ready: None, teardown: None }
    }

    /// Adds the handlers of a list that [`calls!`](crate::calls!) makes.
    pub fn calls(mut self, list: &'static [Handler]) -> GrateBuilder {
        self.handlers.extend_from_slice(list);
        self
    }

    /// Has the options that [`options!`](crate::options!) lists.
    pub fn options(mut self, list: &'static [Opt]) -> GrateBuilder {
        self.options = list;
        self
    }

    /// Keeps a state for each client: see [`clients!`](crate::clients!).
    pub fn clients<S: Client>(self, clients: &'static Clients<S>) -> GrateBuilder {
        clients.follow();
        self
    }

    /// Has a policy about files: see [`guard!`](crate::guard!).
    pub fn guard(mut self, guard: &'static Guard) -> GrateBuilder {
        self.guard = Some(guard);
        self.handlers.extend_from_slice(guard.handlers);
        self
    }

    /// Runs this when the options have been read, before any client runs. An error is a mistake in
    /// the options: the grate prints it and exits with 125.
    pub fn ready(mut self, ready: impl FnOnce() -> Result<(), String> + 'static) -> GrateBuilder {
        self.ready = Some(Box::new(ready));
        self
    }

    /// Runs this when the program has ended, with the status that the grate is going to exit with.
    pub fn teardown(mut self, teardown: impl FnOnce(i32) + 'static) -> GrateBuilder {
        self.teardown = Some(Box::new(teardown));
        self
    }

    /// Reads the options, starts the program that is next on the command line with the handlers,
    /// waits for it, and exits with its status: 128+n if signal n ended it, 127 if it does not
    /// exist, 126 if it cannot run, 125 for a mistake in the options.
    pub fn run(self) -> ! {
        let mut words: Vec<CString> = Vec::new();
        for word in std::env::args_os() {
            use std::os::unix::ffi::OsStringExt;
            words.push(CString::new(word.into_vec()).unwrap_or_default());
        }
        let status = self.run_with(words);
        std::process::exit(status)
    }

    #[cfg(target_arch = "wasm32")]
    fn run_with(mut self, words: Vec<CString>) -> i32 {
        // They stay: C keeps the program's name, and the functions of options may keep values.
        let mut argv: Vec<*mut c_char> = words.into_iter().map(CString::into_raw).collect();
        let mut count = c_int::try_from(argv.len()).unwrap_or_else(|_| die("too many arguments"));
        argv.push(std::ptr::null_mut());
        let mut argv = argv.leak().as_mut_ptr();
        // SAFETY: `argv` has `count` texts and a NULL; the options are constants.
        unsafe {
            raw::lind_options(self.options.as_ptr(), self.options.len(), self.about.as_ptr(), &mut count, &mut argv);
        }
        if let Some(Err(wrong)) = self.ready.take().map(|ready| ready()) {
            die(&wrong);
        }
        if let Some(guard) = self.guard {
            raw::lind_guard_begin(&guard.raw);
        }
        // SAFETY: the handlers are functions of the type that the way in calls; `argv` as above.
        let status = unsafe { raw::lind_grate_run(self.handlers.as_ptr(), self.handlers.len(), count, argv) };
        if let Some(teardown) = self.teardown {
            teardown(status);
        }
        status
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn run_with(self, _: Vec<CString>) -> i32 {
        let _ = (
            self.about,
            self.handlers,
            self.options.len(),
            self.guard.map(|guard| &guard.raw.refusal),
            self.ready,
            self.teardown,
        );
        die("a grate runs in a cage alone: build it with `cargo lind build`")
    }
}
