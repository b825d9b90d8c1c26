//! A runner for hand-written modules: each test gets a root, a key and a cache of its own.
#![allow(dead_code, reason = "each test file uses its part")]

use std::ffi::CString;
use std::path::PathBuf;
use std::sync::Arc;

use lind_engine::{CodeStore, Engine};
use lind_kernel::Kernel;
use lind_kernel::cage::{Limits, Program, Status, boot};
use lind_kernel::engine::LoadError;
use lind_kernel::root::{Root, Walls};

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
        let kernel = Kernel::new(Root::new(root.into(), Walls::Chroot), Limits::default());
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
        let program = Program { name: CString::new(name).unwrap(), argv, envp: Vec::new() };
        Ok(boot(&self.kernel, c"/", program)?.wait_end())
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
