//! A runner for hand-written modules: each test gets a root, a key and a cache of its own.
#![allow(dead_code, reason = "each test file uses its part")]

use std::ffi::CString;
use std::path::PathBuf;
use std::sync::Arc;

use lind_engine::{CodeStore, Engine};
use lind_kernel::Kernel;
use lind_kernel::cage::{Limits, Program, Status, boot};
use lind_kernel::mem::PageMap;
use lind_kernel::root::{Directory, Root, Walls};
use lind_kernel::runtime::LoadError;

/// A runner with a root of its own.
pub struct Runner {
    kernel: Arc<Kernel>,
    /// The engine, to precompile with.
    pub engine: Engine,
    folder: tempfile::TempDir,
}

impl Runner {
    pub fn new() -> Runner {
        Self::in_folder(tempfile::tempdir().unwrap())
    }

    /// A second runner over the same files, keys and cache, as if lind-boot had been started again.
    pub fn again(self) -> Runner {
        Self::in_folder(self.folder)
    }

    fn in_folder(folder: tempfile::TempDir) -> Runner {
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("root")).unwrap();
        let store = || CodeStore::open_in(&at("data"), &at("cache")).unwrap();
        let root = std::fs::File::open(at("root")).unwrap();
        let kernel = Kernel::new(Root::new(root.into(), None, Walls::Chroot), Limits::default(), PageMap::open());
        kernel.attach(Box::new(Engine::new(store(), false).unwrap()));
        Runner { kernel, engine: Engine::new(store(), false).unwrap(), folder }
    }

    /// The host path of a file in the root.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("root").join(name)
    }

    pub fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    /// Puts a module, written as text, in the root.
    pub fn install(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, wat::parse_str(text).unwrap_or_else(|e| panic!("{e}"))).unwrap();
        path
    }

    /// Runs a program of the root to its end.
    pub fn run(&self, argv: &[&str]) -> Result<Status, LoadError> {
        let argv: Vec<CString> = argv.iter().map(|arg| CString::new(*arg).unwrap()).collect();
        let name = self.path(argv[0].to_str().unwrap()).to_str().unwrap().to_owned();
        let program = Program {
            name: CString::new(name).unwrap(),
            argv,
            envp: Vec::new(),
            ignored: 0,
            umask: 0o022,
            preserved: 0,
        };
        let start_in = Directory::open(&self.kernel.root, c"/").unwrap();
        Ok(boot(&self.kernel, start_in, program)?.wait_end())
    }

    /// Runs a chain of programs of the root: grates first, then the program.
    pub fn run_chain(&self, names: &[&str]) -> Status {
        let argv: Vec<String> = names.iter().map(|name| self.path(name).to_str().unwrap().to_owned()).collect();
        let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
        self.run(&argv).unwrap_or_else(|e| panic!("{}", e.reason))
    }

    /// Runs a grate that ends before its program does, and returns how each ended, as a shell would
    /// report it.
    pub fn run_below(&self, grate: &str, app: &str) -> (u8, u8) {
        let ended = |nth: u32| {
            self.install("watch.wasm", &watch(nth));
            match self.run_chain(&["watch.wasm", grate, app]) {
                Status::Exited(code) => code,
                other => panic!("the watching cage ended by {other:?}"),
            }
        };
        (ended(1), ended(2))
    }

    /// Runs a module written as text.
    pub fn run_text(&self, text: &str) -> Status {
        self.install("test.wasm", text);
        self.run(&["test.wasm"]).unwrap_or_else(|e| panic!("{}", e.reason))
    }
}

/// A program around `body`, which is what `_start` does; `items` are further parts of the module.
pub fn program(items: &str, body: &str) -> String {
    format!(
        r#"(module
            (import "lind" "syscall" (func $syscall (param i32 i64 i64 i64 i64 i64 i64) (result i64)))
            (import "lind" "call" (func $call (param i32 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64 i64) (result i64)))
            (memory (export "memory") 65536 65536)
            (func $exit (param i32)
                (drop (call $syscall (i32.const 231) (i64.extend_i32_u (local.get 0))
                    (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0) (i64.const 0))))
            (func $sys3 (param i32 i64 i64 i64) (result i64)
                (call $syscall (local.get 0) (local.get 1) (local.get 2) (local.get 3) (i64.const 0) (i64.const 0) (i64.const 0)))
            {items}
            (func (export "_start") (param $block i32) {body}))"#
    )
}

pub fn signal(number: u8) -> Status {
    Status::signaled(number)
}

/// A program that starts the one its arguments name, hears of the end of the `nth` cage after it,
/// and exits as that did. Which ends first is left to chance, and so is whose child it is by then.
fn watch(nth: u32) -> String {
    let ended = format!(
        "(func $ended (param $call i32) (result i64)
            (if (i64.eq (i64.load offset=24 (local.get $call)) (i64.add (i64.const {nth}) {}))
                (then
                    (i32.store (i32.const 0x10f00) (i32.load offset=40 (local.get $call)))
                    (i32.atomic.store (i32.const 0x10f04) (i32.const 1))))
            (i64.const 0))",
        plain(39)
    );
    let hear = "(if (i64.ne (call $sys3 (i32.const 1005) (i64.const 1) (i64.const 0) (i64.const 0)) (i64.const 0))
        (then (call $exit (i32.const 98))))";
    let wait =
        format!("(loop $wait (drop {}) (br_if $wait (i32.eqz (i32.atomic.load (i32.const 0x10f04)))))", plain(24));
    let end = exit_as("(i32.load (i32.const 0x10f00))");
    program(&handling(&ended, "$ended"), &format!("(local $status i32) {hear} {} {wait} {end}", spawn(0)))
}

/// Starts the program at argv[1] with the handlers at 0x10000.
fn spawn(handlers: usize) -> String {
    format!(
        "(if (i64.lt_s (call $syscall (i32.const 1004)
            (i64.load32_u offset=8 (local.get $block))
            (i64.extend_i32_u (i32.add (local.get $block) (i32.const 8)))
            (i64.extend_i32_u (i32.add (local.get $block) (i32.shl (i32.add (i32.load (local.get $block)) (i32.const 2)) (i32.const 2))))
            (i64.const 0x10000) (i64.const {handlers}) (i64.const 0)) (i64.const 0)) (then (call $exit (i32.const 99))))"
    )
}

/// A program that starts the one at argv[1] `n` times and does `after` after each.
pub fn spawner(n: u32, after: &str) -> String {
    let body = format!(
        "(local $n i32) (local.set $n (i32.const {n}))
        (loop $again {} {after} (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))",
        spawn(0)
    );
    program("", &body)
}

/// Exits as the wait status says a child did.
fn exit_as(status: &str) -> String {
    format!(
        "(local.set $status {status})
        (if (i32.and (local.get $status) (i32.const 127))
            (then (call $exit (i32.or (i32.const 128) (i32.and (local.get $status) (i32.const 127))))))
        (call $exit (i32.shr_u (local.get $status) (i32.const 8)))"
    )
}

/// A grate that starts the program its arguments name, with `handlers` (number, entry) over it, and
/// ends as that did. `elements` are the functions of its table, from 1; `items` define them.
pub fn grate(items: &str, elements: &str, handlers: &[(u32, u32)]) -> String {
    let wait = "(drop (call $sys3 (i32.const 61) (i64.const -1) (i64.const 0x10f00) (i64.const 0)))";
    grate_that(items, elements, handlers, &format!("{wait} {}", exit_as("(i32.load (i32.const 0x10f00))")))
}

/// A grate that starts the program its arguments name, and then does `rest`.
pub fn grate_that(items: &str, elements: &str, handlers: &[(u32, u32)], rest: &str) -> String {
    let stores: String = handlers
        .iter()
        .enumerate()
        .map(|(i, (number, entry))| {
            let at = 0x10000 + 8 * i;
            format!("(i32.store (i32.const {at}) (i32.const {number})) (i32.store offset=4 (i32.const {at}) (i32.const {entry}))")
        })
        .collect();
    let body = format!("(local $status i32) {stores} {} {rest}", spawn(handlers.len()));
    program(&handling(items, elements), &body)
}

/// The text that makes a module one that handles calls, by `elements`, which `items` define.
fn handling(items: &str, elements: &str) -> String {
    let size = 1 + elements.split_whitespace().count();
    format!(
        r#"(type $handler (func (param i32) (result i64)))
        (table (export "__indirect_function_table") {size} {size} funcref)
        (elem (i32.const 1) func {elements})
        (func (export "__lind_handle") (param $entry i32) (param $call i32) (result i64)
            (call_indirect (type $handler) (local.get $call) (local.get $entry)))
        {FORWARD}
        {items}"#
    )
}

/// `$forward`: a handler that sends a call on as it came.
const FORWARD: &str = "(func $forward (param $c i32) (result i64)
    (call $call (i32.load (local.get $c)) (i64.load offset=16 (local.get $c))
        (i64.load offset=24 (local.get $c)) (i64.load offset=32 (local.get $c))
        (i64.load offset=40 (local.get $c)) (i64.load offset=48 (local.get $c))
        (i64.load offset=56 (local.get $c)) (i64.load offset=64 (local.get $c))
        (i64.load offset=72 (local.get $c)) (i64.load offset=80 (local.get $c))
        (i64.load offset=88 (local.get $c)) (i64.load offset=96 (local.get $c))
        (i64.load offset=104 (local.get $c)) (i64.load offset=112 (local.get $c))))";

/// An expression that makes a call without arguments.
pub fn plain(number: u32) -> String {
    format!("(call $sys3 (i32.const {number}) (i64.const 0) (i64.const 0) (i64.const 0))")
}

/// A program that does `first`, and makes `call` from so many calls deep; it exits with the result.
pub fn deep(depth: u32, first: &str, call: &str) -> String {
    program(
        &format!(
            "(func $deep (param $n i32) (result i32)
                (if (result i32) (local.get $n)
                    (then (i32.add (call $deep (i32.sub (local.get $n) (i32.const 1))) (i32.const 0)))
                    (else (i32.wrap_i64 {call}))))"
        ),
        &format!("{first} (call $exit (call $deep (i32.const {depth})))"),
    )
}
