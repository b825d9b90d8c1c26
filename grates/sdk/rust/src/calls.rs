//! The system calls: for each a module with the way into its handler and the way on.
//!
//! `calls::openat::forward(cx, dir, path, flags, mode)` passes a call on changed. For a path it
//! takes a [`Text`](crate::Text): the handler's own, or one of [`Text::of`](crate::Text::of). For a
//! pointer it takes the client's, a reference to a struct of the grate's, or `None` for NULL.

use lind_abi::RetType;
use lind_abi::layout::LindCall;

use crate::plain::{Plain, Single};
use crate::{Arg, CageId, Cx, In, InOut, Out, Result, cx};

/// A value that may be passed for a pointer argument of type `P`.
pub trait Passed<P> {
    /// The argument. `owner` is the cage of a NULL.
    fn pass(self, owner: CageId) -> Arg;
}

/// A client's pointer. One into the grate's own memory would let the kernel write there, so it is
/// nobody's.
#[inline]
fn clients(arg: Arg) -> Arg {
    if arg.cage == cx::own_id() { Arg { cage: CageId(0), ..arg } } else { arg }
}

#[inline]
fn own<T>(address: *const T) -> Arg {
    Arg { value: address as usize as u64, cage: cx::own_id() }
}

macro_rules! pointers {
    ($($name:ident)*) => {$(
        impl<T> Passed<$name<T>> for $name<T> {
            #[inline]
            fn pass(self, _: CageId) -> Arg {
                clients(Arg { value: self.addr, cage: self.cage })
            }
        }

        impl<T> Passed<$name<T>> for Option<$name<T>> {
            #[inline]
            fn pass(self, owner: CageId) -> Arg {
                self.map_or(Arg { value: 0, cage: owner }, |pointer| pointer.pass(owner))
            }
        }
    )*};
}
pointers!(In Out InOut);

impl<T: Plain> Passed<In<T>> for &T {
    #[inline]
    fn pass(self, _: CageId) -> Arg {
        own(self)
    }
}

impl<T: Plain, const N: usize> Passed<In<T>> for &[T; N] {
    #[inline]
    fn pass(self, _: CageId) -> Arg {
        own(self)
    }
}

impl<T: Single> Passed<Out<T>> for &mut T {
    #[inline]
    fn pass(self, _: CageId) -> Arg {
        own(self)
    }
}

impl<T: Single> Passed<InOut<T>> for &mut T {
    #[inline]
    fn pass(self, _: CageId) -> Arg {
        own(self)
    }
}

/// The next argument of a call.
#[inline]
fn next(cx: &Cx<'_>, at: &mut usize) -> Arg {
    *at += 1;
    cx.arg(*at - 1)
}

/// The type by which a handler gets an argument.
macro_rules! seen {
    (Path) => { &$crate::Text };
    (Str) => { &$crate::Text };
    ($head:ident $($inner:ty)?) => { $head $(<$inner>)? };
}

/// Makes an argument of a handler.
macro_rules! take {
    (Path $arg:expr) => {
        $crate::Text::new().take($arg)?
    };
    (Str $arg:expr) => {
        $crate::Text::new().take($arg)?
    };
    ($head:ident $arg:expr) => {
        ArgType::from_arg($arg)
    };
}

/// The type that `forward` takes for an argument.
macro_rules! passed {
    (Path) => { &$crate::Text };
    (Str) => { &$crate::Text };
    (In $inner:ty) => { impl Passed<In<$inner>> };
    (Out $inner:ty) => { impl Passed<Out<$inner>> };
    (InOut $inner:ty) => { impl Passed<InOut<$inner>> };
    ($head:ident) => { $head };
}

/// Makes an argument to forward of a value. Numbers stay whose they were.
#[allow(clippy::cast_sign_loss)]
macro_rules! give {
    (Path $arg:ident $owner:expr) => {
        $arg.arg()
    };
    (Str $arg:ident $owner:expr) => {
        $arg.arg()
    };
    (In $arg:ident $owner:expr) => {
        $arg.pass($owner)
    };
    (Out $arg:ident $owner:expr) => {
        $arg.pass($owner)
    };
    (InOut $arg:ident $owner:expr) => {
        $arg.pass($owner)
    };
    (StrArray $arg:ident $owner:expr) => {
        Arg { value: $arg.addr, cage: $arg.cage }
    };
    (Fd $arg:ident $owner:expr) => {
        Arg { value: i64::from($arg.number).cast_unsigned(), cage: $arg.cage }
    };
    (DirFd $arg:ident $owner:expr) => {
        Arg { value: i64::from($arg.number).cast_unsigned(), cage: $arg.cage }
    };
    (i32 $arg:ident $owner:expr) => {
        Arg { value: i64::from($arg).cast_unsigned(), cage: $owner }
    };
    (u32 $arg:ident $owner:expr) => {
        Arg { value: u64::from($arg), cage: $owner }
    };
    (i64 $arg:ident $owner:expr) => {
        Arg { value: $arg.cast_unsigned(), cage: $owner }
    };
    (u64 $arg:ident $owner:expr) => {
        Arg { value: $arg, cage: $owner }
    };
    ($head:ident $arg:ident $owner:expr) => {
        Arg { value: $arg.0 as u64, cage: $owner }
    };
}

macro_rules! modules {
    (
        implemented { $($row:tt)* }
        missing { $($more:tt)* }
    ) => {
        modules!(@rows $($row)* $($more)*);
    };
    (@rows $(
        $(#[$note:meta])* $nr:literal $area:ident
            $name:ident($($arg:ident: $head:ident $(<$inner:ty>)?),*) -> $ret:ty;
    )*) => {$(
        #[doc = concat!("The call `", stringify!($name), "`, number ", stringify!($nr), ".")]
        #[allow(unused_imports, unused_mut, unused_variables, clippy::cast_sign_loss, clippy::unnecessary_cast)]
        pub mod $name {
            use lind_abi::flags::*;
            use lind_abi::layout::*;
            use lind_abi::*;

            use super::{LindCall, Passed, next};
            use crate::{Cx, cx};

            /// Its number.
            pub const NR: u32 = $nr;

            /// Runs a handler for it: the macro [`calls!`](crate::calls!) calls this.
            #[inline]
            pub fn enter<R: RetType>(
                call: &LindCall,
                on: impl Fn(&Cx<'_>, $(seen!($head $($inner)?)),*) -> Result<R>,
            ) -> i64 {
                let cx = Cx::new(call);
                let mut at = 0;
                let mut run = || on(&cx, $(take!($head next(&cx, &mut at))),*);
                super::outcome(run())
            }

            /// Passes it on, changed, and returns its result.
            #[allow(unsafe_code, clippy::too_many_arguments)]
            #[inline]
            pub fn forward(cx: &Cx<'_>, $($arg: passed!($head $($inner)?)),*) -> Result<i64> {
                let mut args: [Arg; 6] = std::array::from_fn(|at| Arg { value: 0, cage: cx.arg(at).cage });
                let mut rest = args.iter_mut();
                $(if let Some(place) = rest.next() {
                    *place = give!($head $arg place.cage);
                })*
                // SAFETY: of addresses in our own memory the call reads texts and structs, and
                // writes structs that are one of a kind.
                unsafe { cx::call(NR, cx.target(), args) }
            }
        }
    )*};
}
lind_abi::for_each_syscall!(modules);

/// Every call for which the grate has no other handler, except exit, exit_group, rt_sigreturn and
/// the numbers from 1000 to 1099; and the way into handlers that take the call alone.
pub mod any {
    use super::*;

    /// Stands for all numbers.
    pub const NR: u32 = lind_abi::NR_ANY;

    /// Runs a handler for it: the macro [`calls!`](crate::calls!) calls this.
    #[inline]
    pub fn enter<R: RetType>(call: &LindCall, on: impl Fn(&Cx<'_>) -> Result<R>) -> i64 {
        outcome(on(&Cx::new(call)))
    }
}

#[inline]
fn outcome<R: RetType>(result: Result<R>) -> i64 {
    match result {
        Ok(value) => value.into_wire(),
        Err(errno) => errno.to_wire(),
    }
}

/// Lists the handlers of a grate: for each what it may do (`answers` the call itself, `alters` or
/// refuses it, `observes` it), the call, and the function.
///
/// ```no_run
/// use lind_grate::prelude::*;
///
/// fn on_openat(cx: &Cx, dir: DirFd, path: &Text, flags: OpenFlags, mode: Mode) -> Result<i64> {
///     if path.ends_with("secret") {
///         return Err(Errno::EACCES);
///     }
///     calls::openat::forward(cx, dir, path, flags, mode)
/// }
///
/// fn on_write(cx: &Cx) -> Result<Reply> {
///     log("somebody writes");
///     cx.pass()
/// }
///
/// calls!(static CALLS = {
///     alters openat: on_openat,
///     observes [write writev pwrite64]: on_write,
/// });
/// # fn main() {}
/// ```
///
/// A list of calls in brackets shares a function that takes the call alone. There, `any` is every
/// call without a handler of its own. The list is the grate's manifest: `lind-boot inspect` prints
/// it, and registering a handler for any other call is EPERM.
#[macro_export]
macro_rules! calls {
    ($(#[$attr:meta])* $vis:vis static $list:ident = { $($rows:tt)* }) => {
        $crate::calls!(@rows [$(#[$attr])* $vis $list] [] $($rows)*);
    };
    (@rows $head:tt [$($done:tt)*] $verb:ident [$($name:ident)*]: $on:path $(, $($rest:tt)*)?) => {
        $crate::calls!(@rows $head [$($done)* $(($verb $name shared $on))*] $($($rest)*)?);
    };
    (@rows $head:tt [$($done:tt)*] $verb:ident $name:ident: $on:path $(, $($rest:tt)*)?) => {
        $crate::calls!(@rows $head [$($done)* ($verb $name typed $on)] $($($rest)*)?);
    };
    (@rows [$(#[$attr:meta])* $vis:vis $list:ident] [$(($verb:ident $name:ident $kind:ident $on:path))*]) => {
        $(#[$attr])*
        $vis static $list: [$crate::private::Handler; [$(stringify!($name)),*].len()] = [$({
            extern "C" fn lind_enter_(call: &$crate::private::LindCall) -> i64 {
                $crate::calls!(@enter $name $kind call, $on)
            }
            $crate::private::Handler { nr: $crate::calls::$name::NR, handle: lind_enter_ }
        }),*];
        $($crate::manifest_!(stringify!($verb), " ", stringify!($name));)*
    };
    (@enter $name:ident typed $call:ident, $on:path) => { $crate::calls::$name::enter($call, $on) };
    (@enter $name:ident shared $call:ident, $on:path) => { $crate::calls::any::enter($call, $on) };
}
