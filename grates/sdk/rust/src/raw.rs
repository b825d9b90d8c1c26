//! The interface to the kernel and to the C SDK, which is linked to every grate.
#![allow(unsafe_code)]

use std::ffi::{CStr, OsStr, c_char, c_int, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use lind_abi::layout::LindCall;

/// A handler as the way in calls it.
pub type Enter = extern "C" fn(&LindCall) -> i64;

/// `struct lind_handler`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Handler {
    /// The number of the call.
    pub nr: u32,
    /// The handler.
    pub handle: Enter,
}

/// `struct lind_option`.
#[repr(C)]
pub struct Opt {
    /// Its letter, or 0.
    pub letter: c_char,
    /// Its name, or NULL.
    pub name: *const c_char,
    /// The name of its value, or NULL.
    pub value: *const c_char,
    /// A line of help.
    pub help: *const c_char,
    /// Takes the value, and returns NULL or what is wrong with it.
    pub set: extern "C" fn(CText) -> *const c_char,
}

// SAFETY: the pointers are to constants.
unsafe impl Sync for Opt {}

/// A pointer that C keeps for a client.
pub type Opaque = *mut c_void;

/// `struct lind_lifecycle`.
#[repr(C)]
pub struct Lifecycle {
    /// A client without a parent.
    pub start: Option<extern "C" fn(u64) -> Opaque>,
    /// A client's child.
    pub fork: Option<extern "C" fn(Opaque, u64, u64, c_int) -> Opaque>,
    /// A client runs a new program.
    pub exec: Option<extern "C" fn(Opaque, u64)>,
    /// A client has ended.
    pub exit: Option<extern "C" fn(Opaque, u64, c_int)>,
    /// The first program has ended.
    pub end: Option<extern "C" fn(c_int)>,
}

/// `struct lind_guard`.
#[repr(C)]
pub struct RawGuard {
    /// Whether a path may be read.
    pub may_read: Option<extern "C" fn(CText) -> bool>,
    /// Whether a path may be changed.
    pub may_change: Option<extern "C" fn(CText, c_uint) -> bool>,
    /// Whether a change that was allowed for one use still is.
    pub take: Option<extern "C" fn(CText, c_uint) -> bool>,
    /// The errno for clients.
    pub refusal: c_int,
    /// Whether what is in a directory may be moved with it.
    pub may_move_all_in: Option<extern "C" fn(CText) -> bool>,
    /// Why a path may not be changed.
    pub why: Option<extern "C" fn(CText, c_uint) -> *const c_char>,
    /// Whether the descriptors that the grate was started with stay.
    pub keeps_given: bool,
}

/// Declares functions of cages, which elsewhere return a value in their place.
macro_rules! of_cages {
    ($($(#[$attr:meta])* fn $name:ident($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty = $absent:expr)?;)*) => {
        #[cfg(target_arch = "wasm32")]
        unsafe extern "C" {
            $($(#[$attr])* pub safe fn $name($($arg: $ty),*) $(-> $ret)?;)*
        }
        $(
            $(#[$attr])*
            #[cfg(not(target_arch = "wasm32"))]
            #[allow(dead_code)]
            pub extern "C" fn $name($(_: $ty),*) $(-> $ret)? {
                $($absent)?
            }
        )*
    };
}

// The C SDK. Of these functions the safe ones check what they are given; the others are below.
of_cages! {
    fn lind_self() -> u64 = 0;
    fn lind_client_slow_(cage: u64) -> Opaque = std::ptr::null_mut();
    fn lind_grate_lifecycle(lifecycle: &'static Lifecycle);
    fn lind_follow_births();
    fn lind_guard_begin(guard: &'static RawGuard);
    fn lind_guard_path(call: &LindCall) -> i64 = NO_CALL;
    fn lind_guard_exec(call: &LindCall) -> i64 = NO_CALL;
    fn lind_guard_fd(call: &LindCall) -> i64 = NO_CALL;
    fn lind_guard_bind(call: &LindCall) -> i64 = NO_CALL;
    fn lind_guard_receive(call: &LindCall) -> i64 = NO_CALL;
}

/// The result of a call where there is no kernel: -ENOSYS.
#[cfg(not(target_arch = "wasm32"))]
const NO_CALL: i64 = -38;

#[cfg(target_arch = "wasm32")]
mod cage {
    use super::*;

    #[link(wasm_import_module = "lind")]
    unsafe extern "C" {
        #[link_name = "call"]
        pub fn import_call(
            nr: i32,
            target: i64,
            v0: u64,
            c0: u64,
            v1: u64,
            c1: u64,
            v2: u64,
            c2: u64,
            v3: u64,
            c3: u64,
            v4: u64,
            c4: u64,
            v5: u64,
            c5: u64,
        ) -> i64;
        #[link_name = "syscall"]
        pub fn import_syscall(nr: i32, a0: u64, a1: u64, a2: u64, a3: u64, a4: u64, a5: u64) -> i64;
    }

    unsafe extern "C" {
        pub fn lind_options(
            options: *const Opt,
            count: usize,
            about: *const c_char,
            argc: *mut c_int,
            argv: *mut *mut *mut c_char,
        );
        pub fn lind_grate_run(handlers: *const Handler, count: usize, argc: c_int, argv: *mut *mut c_char) -> c_int;
        pub fn lind_log(format: *const c_char, ...);
        pub fn lind_die(format: *const c_char, ...) -> !;
        pub fn lind_denied(
            client: u64,
            nr: u32,
            error: c_int,
            rule: *const c_char,
            what: *const c_char,
            subject: *const c_char,
        ) -> c_int;
        pub fn lind_open_file(value: *const c_char, ending: *const c_char, flags: c_int, mode: c_uint) -> c_int;
        // The functions by which the engine begins and ends the thread of a handler.
        pub fn __lind_worker_init(block: *mut u8, size: usize, tid: c_int);
        pub fn __lind_worker_exit();
    }
}

#[cfg(not(target_arch = "wasm32"))]
mod cage {
    use super::*;

    #[allow(clippy::too_many_arguments)]
    pub unsafe fn import_call(
        _: i32,
        _: i64,
        _: u64,
        _: u64,
        _: u64,
        _: u64,
        _: u64,
        _: u64,
        _: u64,
        _: u64,
        _: u64,
        _: u64,
        _: u64,
        _: u64,
    ) -> i64 {
        NO_CALL
    }
    pub unsafe fn import_syscall(_: i32, _: u64, _: u64, _: u64, _: u64, _: u64, _: u64) -> i64 {
        NO_CALL
    }
}

pub use cage::*;

/// The functions that make a module a grate, so that the linker takes them in.
#[cfg(target_arch = "wasm32")]
#[used]
static WORKER: (unsafe extern "C" fn(*mut u8, usize, c_int), unsafe extern "C" fn()) =
    (__lind_worker_init, __lind_worker_exit);

/// A text that C passes to a function of the grate, for the length of that call. Nothing else makes
/// one.
#[repr(transparent)]
pub struct CText(*const c_char);

impl CText {
    /// Its bytes; none for NULL.
    pub fn bytes(&self) -> &[u8] {
        if self.0.is_null() {
            return &[];
        }
        // SAFETY: C's texts end with a NUL, and this one stays for the call.
        unsafe { CStr::from_ptr(self.0) }.to_bytes()
    }

    /// The same as a path.
    pub fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(self.bytes()))
    }
}
