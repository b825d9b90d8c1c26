//! The call that a handler serves, the memory of its client, and the ways to let it go on.
#![allow(unsafe_code)]

use std::mem::{MaybeUninit, size_of};

use lind_abi::layout::{LindAnswer, LindArg, LindCall};
use lind_abi::{ANSWER, Kind, PASS, RetType, nr};

use crate::plain::{self, Plain};
use crate::{Arg, CageId, Errno, In, InOut, Out, Result, raw};

/// Kinds of copies of `copy_data_between_cages`.
const BYTES: u64 = 0;
const STRING: u64 = 1;

/// This grate's own id.
#[inline]
pub(crate) fn own_id() -> CageId {
    id(raw::lind_self())
}

/// An id on the wire: 0, a cage that the caller may not name, stays 0.
#[inline]
pub(crate) fn id(wire: u64) -> CageId {
    CageId::from_wire(wire).unwrap_or(CageId(0))
}

/// A result on the wire.
#[inline]
pub(crate) fn result(wire: i64) -> Result<i64> {
    match Errno::from_wire(wire) {
        Some(errno) => Err(errno),
        None => Ok(wire),
    }
}

/// Copies a text with its NUL to our own memory; its length without that.
///
/// # Safety
///
/// `size` bytes at `to` can be written.
pub(crate) unsafe fn copy_string(from: Arg, to: *mut u8, size: usize) -> Result<usize> {
    // SAFETY: for the caller to say.
    let copied = unsafe { copy(own(to as usize), from, size, STRING) }?;
    Ok(usize::try_from(copied).map_err(|_| Errno::EFAULT)?.saturating_sub(1))
}

/// An address of our own.
#[inline]
fn own(address: usize) -> Arg {
    Arg { value: address as u64, cage: own_id() }
}

/// # Safety
///
/// If `to` is in our own memory, `length` bytes there can be written.
#[inline]
unsafe fn copy(to: Arg, from: Arg, length: usize, kind: u64) -> Result<i64> {
    // Cage 0 would mean our own memory to the call, and to us it is nobody's.
    if to.cage.0 == 0 || from.cage.0 == 0 {
        return Err(Errno::EPERM);
    }
    let number = nr::copy_data_between_cages.cast_signed();
    let (to_cage, from_cage) = (u64::from(to.cage.0), u64::from(from.cage.0));
    // SAFETY: the kernel checks everything but what is in our own memory, which the caller does.
    result(unsafe { raw::import_syscall(number, to.value, from.value, length as u64, kind, to_cage, from_cage) })
}

/// The result of a handler that says itself what becomes of the call: see [`Cx::pass`] and
/// [`Cx::answer`].
#[derive(Clone, Copy, Debug)]
pub struct Reply(i64);

impl Reply {
    /// A plain result.
    pub fn value(result: i64) -> Reply {
        Reply(result)
    }
}

impl RetType for Reply {
    const KIND: Kind = Kind::Long;
    #[inline]
    fn into_wire(self) -> i64 {
        self.0
    }
}

/// A pointer argument to a `T`, in whatever direction.
pub trait Pointer<T>: Copy {
    /// The address and whose it is.
    fn place(self) -> Arg;
}

macro_rules! pointer {
    ($($name:ident)*) => {$(
        impl<T> Pointer<T> for $name<T> {
            #[inline]
            fn place(self) -> Arg {
                Arg { value: self.addr, cage: self.cage }
            }
        }
    )*};
}
pointer!(In Out InOut);

/// The call that a handler serves.
#[derive(Clone, Copy)]
pub struct Cx<'a> {
    call: &'a LindCall,
}

impl<'a> Cx<'a> {
    #[inline]
    pub(crate) fn new(call: &'a LindCall) -> Cx<'a> {
        Cx { call }
    }

    /// Its number.
    #[inline]
    pub fn nr(&self) -> u32 {
        self.call.nr
    }

    /// The cage that makes the call: a client, or a grate that forwards for one.
    #[inline]
    pub fn caller(&self) -> CageId {
        id(self.call.caller)
    }

    /// The cage whose state the call acts on: the client.
    #[inline]
    pub fn target(&self) -> CageId {
        id(self.call.target)
    }

    /// Argument `at` as it came. Cage 0 is one that the caller may not name: such an argument is
    /// nobody's.
    #[inline]
    pub fn arg(&self, at: usize) -> Arg {
        let LindArg { value, cage } = self.call.args[at];
        Arg { value, cage: id(cage) }
    }

    /// Passes the call on as it came, to the grate before this one or to the kernel, and returns
    /// its result. Memory behind its pointers is read again, from the client: after a decision
    /// about it, forward the copy with `calls::NAME::forward`.
    #[inline]
    pub fn forward(&self) -> Result<i64> {
        // SAFETY: without a described call this makes the call that the thread serves.
        result(unsafe { raw::import_syscall(nr::call_by.cast_signed(), 0, 0, 0, 0, 0, 0) })
    }

    /// The same, when the handler has returned this. It does not learn the result, and nothing
    /// waits inside the grate.
    ///
    /// ```no_run
    /// # use lind_grate::prelude::*;
    /// fn on_socket(cx: &Cx, domain: SocketDomain, _: SocketType, _: i32) -> Result<Reply> {
    ///     if domain.0 == SocketDomain::AF_UNIX { cx.pass() } else { Err(Errno::EACCES) }
    /// }
    /// # calls!(static CALLS = { alters socket: on_socket });
    /// # fn main() {}
    /// ```
    #[inline]
    pub fn pass(&self) -> Result<Reply> {
        Ok(Reply(PASS))
    }

    /// Ends a handler with a result and data: the client gets `result`, and at `to` the bytes of
    /// `from`, in a copy that is made when the handler has returned and needs no call of its own.
    /// If it cannot be made the client gets EFAULT instead, so nothing may have happened that this
    /// would deny.
    pub fn answer<T>(&self, result: i64, to: impl Pointer<T>, from: &'static [u8]) -> Result<Reply> {
        let to = to.place();
        if to.cage.0 == 0 || from.is_empty() {
            return self.write(to, from).map(|()| Reply(result));
        }
        let answer = LindAnswer {
            result,
            to: to.value,
            cage: u64::from(to.cage.0),
            from: from.as_ptr() as usize as u64,
            length: from.len() as u64,
            release: 0,
            part: 0,
        };
        // SAFETY: the engine has room for one behind the call that it gives to a handler, which is
        // what `call` is, and reads it when the handler has returned.
        unsafe { std::ptr::from_ref(self.call).add(1).cast::<LindAnswer>().cast_mut().write(answer) };
        Ok(Reply(ANSWER))
    }

    /// Makes a call of our choice that acts on the client.
    ///
    /// Arguments with this grate's own id as their cage are addresses in its memory, so the caller
    /// vouches for what the call writes there. [`calls`](mod@crate::calls) has a safe function for
    /// each call.
    ///
    /// # Safety
    ///
    /// The call writes only to memory of the grate that it may write to.
    #[inline]
    pub unsafe fn call(&self, nr: u32, args: [Arg; 6]) -> Result<i64> {
        // SAFETY: for the caller to say.
        unsafe { call(nr, self.target(), args) }
    }

    /// Reads as many bytes as `to` has.
    #[inline]
    pub fn read(&self, from: Arg, to: &mut [u8]) -> Result<()> {
        if to.is_empty() {
            return if from.cage.0 == 0 { Err(Errno::EPERM) } else { Ok(()) };
        }
        // SAFETY: `to` can be written.
        unsafe { copy(own(to.as_mut_ptr() as usize), from, to.len(), BYTES) }.map(drop)
    }

    /// Writes all of `from`.
    #[inline]
    pub fn write(&self, to: Arg, from: &[u8]) -> Result<()> {
        if to.cage == own_id() {
            return Err(Errno::EFAULT);
        }
        if from.is_empty() {
            return if to.cage.0 == 0 { Err(Errno::EPERM) } else { Ok(()) };
        }
        // SAFETY: `to` is in the memory of another.
        unsafe { copy(to, own(from.as_ptr() as usize), from.len(), BYTES) }.map(drop)
    }

    /// Reads the struct that an argument points to: a copy, made once.
    #[inline]
    pub fn load<T: Plain>(&self, from: impl Pointer<T>) -> Result<T> {
        self.load_from(from.place())
    }

    /// The same for an address in another argument, or in a struct.
    pub fn load_from<T: Plain>(&self, from: Arg) -> Result<T> {
        let mut value = MaybeUninit::<T>::uninit();
        // SAFETY: there is room for a T, which is valid whatever its bytes are.
        unsafe {
            copy(own(value.as_mut_ptr() as usize), from, size_of::<T>(), BYTES)?;
            Ok(value.assume_init())
        }
    }

    /// Writes a struct where an argument points to.
    #[inline]
    pub fn store<T: Plain>(&self, to: impl Pointer<T>, value: &T) -> Result<()> {
        self.write(to.place(), plain::bytes(value))
    }

    /// Reads a text up to its NUL, of at most `longest` bytes. ENAMETOOLONG if it is longer.
    pub fn text(&self, from: Arg, longest: usize) -> Result<Vec<u8>> {
        let mut text = vec![0; longest + 1];
        // SAFETY: `text` has that many bytes.
        let length = unsafe { copy_string(from, text.as_mut_ptr(), text.len()) }?;
        text.truncate(length);
        Ok(text)
    }
}

/// # Safety
///
/// As [`Cx::call`].
#[inline]
pub(crate) unsafe fn call(nr: u32, target: CageId, args: [Arg; 6]) -> Result<i64> {
    let [a, b, c, d, e, f] = args.map(|arg| (arg.value, u64::from(arg.cage.0)));
    // SAFETY: for the caller to say.
    result(unsafe {
        raw::import_call(
            nr.cast_signed(),
            i64::from(target.0),
            a.0,
            a.1,
            b.0,
            b.1,
            c.0,
            c.1,
            d.0,
            d.1,
            e.0,
            e.1,
            f.0,
            f.1,
        )
    })
}
