//! The types of system call arguments and results.
//!
//! Each type can be made from a raw argument and has a [`Kind`], so that one row of the table
//! serves the kernel, strace and the documentation. Integers keep the low bits, as Linux does for
//! an `int` parameter. None of these types can be dereferenced: an address is a claim of the guest,
//! and the kernel's memory doors are what checks it.

use core::marker::PhantomData;
use core::mem::MaybeUninit;

use crate::flags::Names;
use crate::layout::Layout;

/// Names a cage. Ids ascend, are never reused while the runner lives, and equal the pid.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(transparent)]
pub struct CageId(pub u32);

impl CageId {
    /// The id in a 64-bit wire value; None if it cannot be one.
    pub fn from_wire(value: u64) -> Option<CageId> {
        u32::try_from(value).ok().filter(|&id| id != 0).map(CageId)
    }
}

/// One argument of a call, with the cage whose memory, fds or directory it refers to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Arg {
    /// The 64 bits the guest passed.
    pub value: u64,
    /// The cage that the argument refers to.
    pub cage: CageId,
}

/// The value of one argument, spaced as engines pass values to host functions, so that a call's six
/// need not be copied on their way through any number of grates.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Word {
    /// The value.
    pub value: u64,
    _unused: MaybeUninit<u64>,
}

impl Word {
    /// The words of six values.
    #[inline]
    pub fn six(values: [u64; 6]) -> [Word; 6] {
        values.map(|value| Word { value, _unused: MaybeUninit::uninit() })
    }
}

/// A system call on its way: to the kernel or to a grate.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The number.
    pub nr: u32,
    /// The cage that makes this call (the grate, when it forwards).
    pub caller: CageId,
    /// The cage whose state it acts on. Differs from `caller` when a grate acts for a client.
    pub target: CageId,
    /// The arguments.
    pub values: &'a [Word; 6],
    /// The cages whose memory, descriptors or directories the arguments refer to.
    pub owners: Owners,
}

/// The cages that a call's arguments refer to. Most calls are a program's own and need no list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owners {
    /// All refer to one cage.
    All(CageId),
    /// One cage for each argument.
    Each([CageId; 6]),
}

impl Call<'_> {
    /// Argument `at`, of six.
    #[inline]
    pub fn arg(&self, at: usize) -> Arg {
        Arg { value: self.values[at].value, cage: self.owner(at) }
    }

    /// The cage that argument `at` refers to.
    #[inline]
    pub fn owner(&self, at: usize) -> CageId {
        match &self.owners {
            Owners::All(cage) => *cage,
            Owners::Each(cages) => cages[at],
        }
    }

    /// Whether any argument refers to `cage`.
    pub fn names(&self, cage: CageId) -> bool {
        match &self.owners {
            Owners::All(owner) => *owner == cage,
            Owners::Each(cages) => cages.contains(&cage),
        }
    }
}

/// The kind of an argument or result: how to print it, and what it points to.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Nothing (a result of success only).
    Unit,
    /// A file descriptor.
    Fd,
    /// A directory fd or AT_FDCWD.
    DirFd,
    /// A NUL-terminated path.
    Path,
    /// A NUL-terminated string.
    Str,
    /// A NULL-terminated array of strings (argv, envp).
    StrArray,
    /// A signed 32-bit number.
    Int,
    /// An unsigned 32-bit number.
    Uint,
    /// A signed 64-bit number.
    Long,
    /// An unsigned 64-bit number.
    Ulong,
    /// A byte count, of the pointer before it where there is one.
    Len,
    /// A file offset.
    Off,
    /// An address that is not looked through.
    Addr,
    /// Permission bits, octal.
    Mode,
    /// A process or thread id.
    Pid,
    /// A user id.
    Uid,
    /// A group id.
    Gid,
    /// A signal number.
    Signal,
    /// The result never comes (exit).
    Never,
    /// A set of flags.
    Flags(&'static Names),
    /// One of a list of values.
    Value(&'static Names),
    /// Points to a struct that the kernel reads.
    In(&'static Layout),
    /// Points to a struct that the kernel writes.
    Out(&'static Layout),
    /// Points to a struct that the kernel reads and writes.
    InOut(&'static Layout),
}

/// A type that an argument of the table may have.
pub trait ArgType: Sized {
    /// How to print it.
    const KIND: Kind;
    /// Reads it from the wire. Never fails: the call itself checks the value.
    fn from_arg(arg: Arg) -> Self;
}

/// A type that a result of the table may have.
pub trait RetType {
    /// How to print it.
    const KIND: Kind;
    /// The value a guest sees.
    fn into_wire(self) -> i64;
}

/// The low 32 bits, as a C `int` parameter takes them.
#[inline]
#[allow(clippy::cast_possible_truncation)]
fn low32(value: u64) -> u32 {
    value as u32
}

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident($inner:ty) $kind:ident, $read:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(transparent)]
        pub struct $name(pub $inner);

        impl ArgType for $name {
            const KIND: Kind = Kind::$kind;
            #[inline]
            fn from_arg(arg: Arg) -> Self {
                let read: fn(u64) -> $inner = $read;
                $name(read(arg.value))
            }
        }

        impl RetType for $name {
            const KIND: Kind = Kind::$kind;
            #[inline]
            fn into_wire(self) -> i64 {
                #[allow(clippy::cast_possible_wrap, clippy::unnecessary_cast)]
                { self.0 as i64 }
            }
        }
    )*};
}

numbers! {
    /// A byte count. Guests have 32-bit sizes; larger values do not fit their memory and fail
    /// where the range is checked.
    Len(u64) Len, |v| v;
    /// A file offset (off_t, signed).
    Off(i64) Off, u64::cast_signed;
    /// An address in the guest, not looked through.
    Addr(u64) Addr, |v| v;
    /// Permission bits.
    Mode(u32) Mode, low32;
    /// A process or thread id as the guest passes it; the meaning of 0 and negatives depends on the
    /// call.
    Pid(i32) Pid, |v| low32(v).cast_signed();
    /// A user id.
    Uid(u32) Uid, low32;
    /// A group id.
    Gid(u32) Gid, low32;
    /// A signal number.
    Signal(i32) Signal, |v| low32(v).cast_signed();
}

macro_rules! plain {
    ($($ty:ty, $kind:ident, $read:expr;)*) => {$(
        impl ArgType for $ty {
            const KIND: Kind = Kind::$kind;
            #[inline]
            fn from_arg(arg: Arg) -> Self {
                let read: fn(u64) -> $ty = $read;
                read(arg.value)
            }
        }
        impl RetType for $ty {
            const KIND: Kind = Kind::$kind;
            #[inline]
            fn into_wire(self) -> i64 {
                #[allow(clippy::cast_possible_wrap, clippy::unnecessary_cast, clippy::cast_lossless)]
                { self as i64 }
            }
        }
    )*};
}

plain! {
    i32, Int, |v| low32(v).cast_signed();
    u32, Uint, low32;
    i64, Long, u64::cast_signed;
    u64, Ulong, |v| v;
}

impl RetType for () {
    const KIND: Kind = Kind::Unit;
    #[inline]
    fn into_wire(self) -> i64 {
        0
    }
}

impl RetType for usize {
    const KIND: Kind = Kind::Len;
    #[inline]
    fn into_wire(self) -> i64 {
        #[allow(clippy::cast_possible_wrap)]
        {
            self as i64
        }
    }
}

/// The result of exit: the thread that made the call never sees it, and a grate that forwarded it
/// sees 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoReturn;

impl RetType for NoReturn {
    const KIND: Kind = Kind::Never;
    #[inline]
    fn into_wire(self) -> i64 {
        0
    }
}

macro_rules! owned {
    ($($(#[$doc:meta])* $name:ident { $field:ident: $inner:ty } $kind:ident, $read:expr;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct $name {
            /// The value as the guest spells it.
            pub $field: $inner,
            /// The cage that it belongs to.
            pub cage: CageId,
        }

        impl ArgType for $name {
            const KIND: Kind = Kind::$kind;
            #[inline]
            fn from_arg(arg: Arg) -> Self {
                let read: fn(u64) -> $inner = $read;
                $name { $field: read(arg.value), cage: arg.cage }
            }
        }
    )*};
}

owned! {
    /// A file descriptor of a cage.
    Fd { number: i32 } Fd, |v| low32(v).cast_signed();
    /// A directory's file descriptor, or AT_FDCWD.
    DirFd { number: i32 } DirFd, |v| low32(v).cast_signed();
    /// The address of a NUL-terminated path; it is not checked yet.
    Path { addr: u64 } Path, |v| v;
    /// The address of a NUL-terminated string; it is not checked yet.
    Str { addr: u64 } Str, |v| v;
    /// The address of a NULL-terminated array of 32-bit string pointers; it is not checked yet.
    StrArray { addr: u64 } StrArray, |v| v;
}

/// A result that is a file descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NewFd(pub i32);

impl RetType for NewFd {
    const KIND: Kind = Kind::Fd;
    #[inline]
    fn into_wire(self) -> i64 {
        i64::from(self.0)
    }
}

/// A type that has a layout in [`layout`](crate::layout), so that a pointer can point to it.
pub trait HasLayout {
    /// Its name and size.
    const LAYOUT: &'static Layout;
}

impl HasLayout for u8 {
    const LAYOUT: &'static Layout = &Layout { name: "bytes", size: 1 };
}

macro_rules! scalar_layout {
    ($($ty:ty, $name:literal;)*) => {$(
        impl HasLayout for $ty {
            const LAYOUT: &'static Layout = &Layout { name: $name, size: size_of::<$ty>() };
        }
    )*};
}
scalar_layout!(i32, "int"; u32, "uint"; i64, "long"; u64, "ulong"; [i32; 2], "int2";);

macro_rules! pointers {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name<T> {
            /// The guest address; 0 is NULL.
            pub addr: u64,
            /// The cage whose memory it is in.
            pub cage: CageId,
            points_to: PhantomData<fn() -> T>,
        }

        impl<T> $name<T> {
            /// A pointer to `addr` in the memory of `cage`.
            #[inline]
            pub fn new(addr: u64, cage: CageId) -> Self {
                $name { addr, cage, points_to: PhantomData }
            }
            /// Whether it is NULL.
            #[inline]
            pub fn is_null(&self) -> bool {
                self.addr == 0
            }
            /// The same address as bytes or another type.
            #[inline]
            pub fn cast<U>(self) -> $name<U> {
                $name::new(self.addr, self.cage)
            }
        }

        impl<T> Clone for $name<T> {
            fn clone(&self) -> Self {
                *self
            }
        }
        impl<T> Copy for $name<T> {}

        impl<T: HasLayout> ArgType for $name<T> {
            const KIND: Kind = Kind::$name(T::LAYOUT);
            #[inline]
            fn from_arg(arg: Arg) -> Self {
                $name::new(arg.value, arg.cage)
            }
        }
    )*};
}

pointers! {
    /// A pointer to something the kernel reads.
    In
    /// A pointer to something the kernel writes.
    Out
    /// A pointer to something the kernel reads and writes.
    InOut
}
