//! The table's rows as arms: from a number to the kernel function of that name.

use lind_abi::flags::*;
use lind_abi::layout::*;
#[allow(unused_imports, reason = "the table names them as rows gain functions")]
use lind_abi::{
    Addr, Arg, ArgType, CageId, Call, DirFd, Errno, Fd, Gid, In, InOut, Len, Mode, NewFd, NoReturn, Off, Out, Owners,
    Path, Word,
};
#[allow(unused_imports, reason = "the table names them as rows gain functions")]
use lind_abi::{Pid, Result, RetType, Signal, Str, StrArray, Uid};

use super::{Ctx, is_short};
use crate::sys;

#[inline]
fn wire<T: RetType>(result: Result<T>) -> i64 {
    match result {
        Ok(value) => value.into_wire(),
        Err(errno) => errno.to_wire(),
    }
}

/// Whether a call needs the cage's identity at the host: calls that find files by name or change
/// them. Whole areas are listed, so that no call is forgotten, except for calls that grates make
/// often: dup(2) needs no identity, and fcntl(2) takes it on itself where its command needs it.
const fn asks_who(area: &str, name: &str) -> bool {
    if same(area, "fs") && (same(name, "dup") || same(name, "fcntl")) {
        return false;
    }
    const AREAS: [&str; 2] = ["fs", "net"];
    const CALLS: [&str; 2] = ["execve", "execveat"];
    let (mut at, mut found) = (0, false);
    while at < 2 {
        found |= same(area, AREAS[at]) || same(name, CALLS[at]);
        at += 1;
    }
    found
}

const fn same(one: &str, other: &str) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut at = 0;
    while at < one.len() && at < other.len() && one[at] == other[at] {
        at += 1;
    }
    at == one.len() && at == other.len()
}

/// One arm: the arguments as the row's types, a call of the function that the row names, and its
/// result as encoded for the guest.
macro_rules! carry_out {
    ($context:ident, $arg_at:ident, $nr:literal $area:ident $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty) => {{
        let cx = $context();
        const FILES: bool = asks_who(stringify!($area), stringify!($name));
        if FILES && !is_short($nr) && let Err(errno) = cx.cage.as_itself() {
            return errno.to_wire();
        }
        #[allow(unused_mut)]
        let mut at = 0..6;
        $(let $arg = <$ty as ArgType>::from_arg($arg_at(at.next().expect("no row has more than six arguments")));)*
        let _ = at;
        let result = wire::<$ret>(sys::$area::$name(&cx, $($arg),*));
        if FILES && !is_short($nr) && cx.cage.id != cx.thread.cage.id {
            // A call that a grate makes for itself leaves its client's thread as it was.
            let _ = cx.thread.cage.as_itself();
        }
        result
    }};
}

macro_rules! dispatch {
    (
        implemented { $($(#[doc = $note:literal])* $nr:literal $area:ident $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty;)* }
        missing { $($missing:tt)* }
    ) => {
        /// Carries out a call in the kernel. Each row of the table is one arm, and the path is the
        /// name.
        #[inline(always)]
        pub(super) fn dispatch(cx: &Ctx<'_>, call: &Call<'_>) -> i64 {
            let (context, arg_at) = (|| *cx, |at| call.arg(at));
            match call.nr {
                $($nr => carry_out!(context, arg_at, $nr $area $name($($arg: $ty),*) -> $ret),)*
                _ => lind_abi::absent(call.nr).to_wire(),
            }
        }

        /// Carries out a call that is short; `others` answers all others. The context is made in
        /// each arm: if the call is short enough to become part of its arm, most of the context is
        /// never stored.
        #[inline(always)]
        pub(super) fn dispatch_short<'a>(
            context: impl Fn() -> Ctx<'a>,
            number: u32,
            arg_at: impl Fn(usize) -> Arg,
            others: impl Fn() -> i64,
        ) -> i64 {
            match number {
                $($nr if const { is_short($nr) } => carry_out!(context, arg_at, $nr $area $name($($arg: $ty),*) -> $ret),)*
                _ => others(),
            }
        }
    };
}
lind_abi::for_each_syscall!(dispatch);
