//! Grates in Rust: programs that answer system calls of other programs.
//!
//! A grate registers handlers for the system calls that it wants to see, starts the next program of
//! its command line with them, and waits for it. This one gives its clients the user id 10:
//!
//! ```no_run
//! use lind_grate::prelude::*;
//!
//! fn on_geteuid(_: &Cx) -> Result<Uid> {
//!     Ok(Uid(10))
//! }
//!
//! calls!(static CALLS = { answers geteuid: on_geteuid });
//!
//! fn main() {
//!     GrateBuilder::new("Gives programs the user id 10.").calls(&CALLS).run()
//! }
//! ```
//!
//! # Handlers
//!
//! The arguments of a handler have the types of the row in `src/abi/syscalls.rs`, with two
//! exceptions. A path ([`abi::Path`]) and a string ([`abi::Str`]) arrive as `&Text`, a copy in the
//! grate's memory, made once: a client that changes its memory between the handler's decision and
//! the call changes nothing. Pointers ([`In`], [`Out`], [`InOut`]) are addresses in the memory of a
//! cage; [`Cx::load`], [`Cx::store`], [`Cx::read`] and [`Cx::write`] reach what they point to.
//!
//! A handler returns what the system call returns, or an [`Errno`]. It may let the call go on in
//! three ways:
//!
//! | | |
//! |---|---|
//! | `calls::openat::forward(cx, ...)` | changed, and with its result |
//! | [`Cx::forward`] | as it came, and with its result |
//! | [`Cx::pass`] | as it came, when the handler has returned, which does not learn the result |
//!
//! Here a handler alters the result of a call, which the kernel writes into the grate's memory:
//!
//! ```no_run
//! use lind_grate::prelude::*;
//!
//! fn on_uname(cx: &Cx, buf: Out<Utsname>) -> Result<()> {
//!     let mut name = Utsname::default();
//!     calls::uname::forward(cx, &mut name)?;
//!     name.nodename[..5].copy_from_slice(b"here\0");
//!     cx.store(buf, &name)
//! }
//!
//! calls!(static CALLS = { alters uname: on_uname });
//! # fn main() {}
//! ```
//!
//! Handlers run at the same time on the threads of whoever calls, so what they share is in a
//! `Mutex`, an atomic, or in [`Clients`]. No lock may be held while a call is forwarded: it may
//! wait for hours. A handler that panics ends the grate, and the calls of its clients fail with EIO
//! from then on: a policy that is broken lets nothing through.
//!
//! # How it is built
//!
//! The list of handlers is a declarative macro, [`calls!`], and not an attribute on each function:
//! an attribute is a procedural macro, with a parser of Rust that takes longer to build than the
//! rest of this crate, and the list can be read as the grate's manifest, which it is. The same
//! lines become the section `lind.grate` of the module, beyond which the kernel lets the grate
//! register nothing.
//!
//! Underneath is the C SDK (`grates/sdk/c`, linked as `liblindgrate.a`): it starts the program,
//! follows clients, reads options and walks paths. So a policy means the same in both languages.
//! Handlers themselves use the raw interface of docs/threei.md.
//!
//! On other targets than cages the crate compiles, so that a grate's own functions can be tested
//! natively; calls that reach the kernel fail there with ENOSYS.

mod address;
pub mod calls;
mod clients;
mod cx;
mod grate;
mod guard;
mod log;
mod options;
mod plain;
pub mod policy;
mod raw;
mod text;

pub use address::Address;
pub use clients::{Client, Clients};
pub use cx::{Cx, Reply};
pub use grate::GrateBuilder;
pub use guard::{Guard, below};
pub use lind_abi as abi;
pub use lind_abi::{Arg, CageId, Errno, In, InOut, Out, Result};
pub use log::{denied, die, log};
pub use options::Opt;
pub use plain::{Plain, Single};
pub use text::Text;

/// The names that most grates use.
pub mod prelude {
    pub use crate::abi::flags::*;
    pub use crate::abi::layout::*;
    pub use crate::abi::{Addr, DirFd, Fd, Gid, Len, Mode, NewFd, NoReturn, Off, Pid, Signal, StrArray, Uid};
    pub use crate::calls;
    pub use crate::{
        Address, Arg, CageId, Client, Clients, Cx, Errno, GrateBuilder, Guard, In, InOut, Out, Reply, Result, Text,
        below, clients, denied, die, guard, log, options,
    };
}

/// The names that the macros of this crate expand to; not for other use.
#[doc(hidden)]
pub mod private {
    pub use crate::guard::handlers as guarded;
    pub use crate::options::{flag, value};
    pub use crate::raw::{CText, Enter, Handler, Lifecycle, Opaque, RawGuard};
    pub use lind_abi::layout::LindCall;

    /// The bytes of a line of the manifest.
    pub const fn bytes<const N: usize>(text: &str) -> [u8; N] {
        let from = text.as_bytes();
        let mut to = [0; N];
        let mut at = 0;
        while at < N {
            to[at] = from[at];
            at += 1;
        }
        to
    }
}

/// A line of the manifest.
#[doc(hidden)]
#[macro_export]
macro_rules! manifest_ {
    ($($part:expr),+) => {
        #[allow(unsafe_code)]
        const _: () = {
            const LINE: &str = concat!($($part,)+ "\0");
            #[used]
            #[unsafe(link_section = "lind.grate")]
            static BYTES: [u8; LINE.len()] = $crate::private::bytes(LINE);
        };
    };
}
