//! Copies that survive a fault.
//!
//! All routines lie between `lind_copy_begin` and `lind_copy_end`, keep nothing on the stack, and
//! fail at `lind_copy_fault`, which returns 1 to their caller. So a fault at any instruction in the
//! range is recovered by moving the program counter there; [`fixup`] says where.
//!
//! Small sizes go by overlapping moves (all loads before the stores), then a loop; from 1 KiB `rep
//! movsb`. Measured against memcpy on a processor with fast short repeats: 2.3/2.0 ns for 64 bytes,
//! equal from 4 KiB.

use core::arch::global_asm;
use core::mem::{MaybeUninit, offset_of};

use lind_abi::layout::{LindAnswer, LindArg, LindCall, STRUCTS};
use lind_abi::{CageId, Call, Errno, Owners, Result, Word};

/// Types any bytes are a valid value of, without padding, so that they may be copied to and from a
/// guest as bytes.
///
/// # Safety
/// The type has no padding, no invalid bit patterns, no references and no interior mutability.
pub unsafe trait Pod: Copy + 'static {}

macro_rules! pod {
    ($($t:ty)*) => { $(
        // SAFETY: an integer has neither padding nor invalid values.
        unsafe impl Pod for $t {}
    )* };
}
pod!(u8 i8 u16 i16 u32 i32 u64 i64 u128 i128);

macro_rules! layouts {
    ($($t:ident)*) => { $(
        // SAFETY: integers and arrays of them; without padding, as the assertion below checks for
        // every struct.
        unsafe impl Pod for lind_abi::layout::$t {}
    )* };
}
layouts!(
    Timespec Timeval Timezone Itimerspec Itimerval Utimbuf Tms Stat StatxTimestamp
    Statx Statfs Dirent64 Flock FOwnerEx Iovec Msghdr Mmsghdr Cmsghdr Sigevent
    Ucred Linger Sockaddr Pollfd EpollEvent FdSet SigsetArg Rlimit Rusage
    Sysinfo Utsname Sigset Sigaction Siginfo Stack Termios Winsize RobustList
    SpawnHandler LindArg LindCall LindFdRoutes LindAnswer IpcPerm ShmidDs SemidDs Sembuf MsqidDs MqAttr OpenHow CloneArgs
);

// A padding byte would carry host memory to the guest.
const _: () = {
    let mut which = 0;
    while which < STRUCTS.len() {
        let mut field = 0;
        let mut sum = 0;
        while field < STRUCTS[which].fields.len() {
            sum += STRUCTS[which].fields[field].size;
            field += 1;
        }
        assert!(sum == STRUCTS[which].layout.size, "a struct that crosses has padding");
        which += 1;
    }
};

// SAFETY: an array of Pod has no padding between its elements.
unsafe impl<T: Pod, const N: usize> Pod for [T; N] {}

global_asm!(
    r#"
    .text
    .p2align 6
    .globl lind_copy_begin
    .hidden lind_copy_begin
lind_copy_begin:

    // rdi = to, rsi = from, rdx = length; rax = 0 or 1 (fault)
    .globl lind_copy_bytes
    .hidden lind_copy_bytes
    .type lind_copy_bytes, @function
lind_copy_bytes:
    cmp rdx, 16
    jb 20f
    cmp rdx, 32
    ja 30f
    movups xmm0, [rsi]
    movups xmm1, [rsi + rdx - 16]
    movups [rdi], xmm0
    movups [rdi + rdx - 16], xmm1
    xor eax, eax
    ret
30: cmp rdx, 64
    ja 40f
    movups xmm0, [rsi]
    movups xmm1, [rsi + 16]
    movups xmm2, [rsi + rdx - 32]
    movups xmm3, [rsi + rdx - 16]
    movups [rdi], xmm0
    movups [rdi + 16], xmm1
    movups [rdi + rdx - 32], xmm2
    movups [rdi + rdx - 16], xmm3
    xor eax, eax
    ret
40: cmp rdx, 128
    ja 50f
    movups xmm0, [rsi]
    movups xmm1, [rsi + 16]
    movups xmm2, [rsi + 32]
    movups xmm3, [rsi + 48]
    movups xmm4, [rsi + rdx - 64]
    movups xmm5, [rsi + rdx - 48]
    movups xmm6, [rsi + rdx - 32]
    movups xmm7, [rsi + rdx - 16]
    movups [rdi], xmm0
    movups [rdi + 16], xmm1
    movups [rdi + 32], xmm2
    movups [rdi + 48], xmm3
    movups [rdi + rdx - 64], xmm4
    movups [rdi + rdx - 48], xmm5
    movups [rdi + rdx - 32], xmm6
    movups [rdi + rdx - 16], xmm7
    xor eax, eax
    ret
50: cmp rdx, 1024
    jae 60f
51: movups xmm0, [rsi]
    movups xmm1, [rsi + 16]
    movups xmm2, [rsi + 32]
    movups xmm3, [rsi + 48]
    movups [rdi], xmm0
    movups [rdi + 16], xmm1
    movups [rdi + 32], xmm2
    movups [rdi + 48], xmm3
    add rsi, 64
    add rdi, 64
    sub rdx, 64
    cmp rdx, 64
    ja 51b
    movups xmm0, [rsi + rdx - 64]
    movups xmm1, [rsi + rdx - 48]
    movups xmm2, [rsi + rdx - 32]
    movups xmm3, [rsi + rdx - 16]
    movups [rdi + rdx - 64], xmm0
    movups [rdi + rdx - 48], xmm1
    movups [rdi + rdx - 32], xmm2
    movups [rdi + rdx - 16], xmm3
    xor eax, eax
    ret
60: mov rcx, rdx
    rep movsb
    xor eax, eax
    ret
20: cmp edx, 8
    jb 21f
    mov rax, [rsi]
    mov rcx, [rsi + rdx - 8]
    mov [rdi], rax
    mov [rdi + rdx - 8], rcx
    xor eax, eax
    ret
21: cmp edx, 4
    jb 22f
    mov eax, [rsi]
    mov ecx, [rsi + rdx - 4]
    mov [rdi], eax
    mov [rdi + rdx - 4], ecx
    xor eax, eax
    ret
22: test edx, edx
    je 23f
    movzx eax, byte ptr [rsi]
    movzx r8d, byte ptr [rsi + rdx - 1]
    shr edx, 1
    movzx ecx, byte ptr [rsi + rdx]
    mov [rdi + rdx], cl
    mov [rdi], al
    adc rdx, rdx
    mov [rdi + rdx - 1], r8b
23: xor eax, eax
    ret

    // rdi = to, rsi = from, rdx = words of 8 bytes, not 0; rax = 0 or 1
    .globl lind_copy_words
    .hidden lind_copy_words
    .type lind_copy_words, @function
lind_copy_words:
    mov rax, [rsi + 8 * rdx - 8]
    mov [rdi + 8 * rdx - 8], rax
    dec rdx
    jnz lind_copy_words
    xor eax, eax
    ret

    // rdi = to, rsi = seven words, the fifth of which becomes 0; rax = 0 or 1
    .globl lind_copy_take_answer
    .hidden lind_copy_take_answer
    .type lind_copy_take_answer, @function
lind_copy_take_answer:
    .set word, 0
    .rept 7
    mov rax, [rsi + 8 * word]
    mov [rdi + 8 * word], rax
    .set word, word + 1
    .endr
    xor eax, eax
    mov [rsi + 32], rax
    ret

    // rdi = to, esi = number, edx = caller, ecx = target, r8 = six values, r9d = their owner; rax = 0 or 1
    .globl lind_copy_own_call
    .hidden lind_copy_own_call
    .type lind_copy_own_call, @function
lind_copy_own_call:
    mov eax, esi
    mov edx, edx
    mov ecx, ecx
    mov [rdi], rax
    mov [rdi + 8], rdx
    mov [rdi + 16], rcx
    movd xmm1, r9d
    .set arg, 0
    .rept 6
    movq xmm0, [r8 + 16 * arg]
    punpcklqdq xmm0, xmm1
    movups [rdi + 24 + 16 * arg], xmm0
    .set arg, arg + 1
    .endr
    xor eax, eax
    ret

    // rdi = to, esi = number, edx = caller, ecx = target, r8 = six values, r9 = six owners; rax = 0 or 1
    .globl lind_copy_call
    .hidden lind_copy_call
    .type lind_copy_call, @function
lind_copy_call:
    mov eax, esi
    mov edx, edx
    mov ecx, ecx
    mov [rdi], rax
    mov [rdi + 8], rdx
    mov [rdi + 16], rcx
    .set arg, 0
    .rept 6
    movq xmm0, [r8 + 16 * arg]
    movd xmm1, [r9 + 4 * arg]
    punpcklqdq xmm0, xmm1
    movups [rdi + 24 + 16 * arg], xmm0
    .set arg, arg + 1
    .endr
    xor eax, eax
    ret

    // rdi = to, esi = byte, rdx = length; rax = 0 or 1
    .globl lind_copy_fill
    .hidden lind_copy_fill
    .type lind_copy_fill, @function
lind_copy_fill:
    mov eax, esi
    mov rcx, rdx
    rep stosb
    xor eax, eax
    ret

    // rdi = word, rsi = where the old value goes; rax = 0 or 1
    .globl lind_copy_load_u32
    .hidden lind_copy_load_u32
    .type lind_copy_load_u32, @function
lind_copy_load_u32:
    mov ecx, [rdi]
    mov [rsi], ecx
    xor eax, eax
    ret

    // rdi = word, esi = new value, rdx = where the old value goes; rax = 0 or 1
    .globl lind_copy_swap_u32
    .hidden lind_copy_swap_u32
    .type lind_copy_swap_u32, @function
lind_copy_swap_u32:
    xchg [rdi], esi
    mov [rdx], esi
    xor eax, eax
    ret

    // rdi = word, esi = expected, edx = new value, rcx = where the old value goes; rax = 0 or 1
    .globl lind_copy_cmpxchg_u32
    .hidden lind_copy_cmpxchg_u32
    .type lind_copy_cmpxchg_u32, @function
lind_copy_cmpxchg_u32:
    mov eax, esi
    lock cmpxchg [rdi], edx
    mov [rcx], eax
    xor eax, eax
    ret

    .globl lind_copy_end
    .hidden lind_copy_end
lind_copy_end:
    .globl lind_copy_fault
    .hidden lind_copy_fault
lind_copy_fault:
    mov eax, 1
    ret
"#
);

// The layout that these two write.
const _: () = {
    assert!(size_of::<LindCall>() == 24 + 6 * 16 && offset_of!(LindCall, args) == 24);
    assert!(offset_of!(LindCall, nr) == 0 && offset_of!(LindCall, caller) == 8 && offset_of!(LindCall, target) == 16);
    assert!(offset_of!(LindArg, value) == 0 && offset_of!(LindArg, cage) == 8);
    assert!(size_of::<CageId>() == 4);
};

unsafe extern "sysv64" {
    static lind_copy_begin: u8;
    static lind_copy_end: u8;
    static lind_copy_fault: u8;
    fn lind_copy_bytes(to: *mut u8, from: *const u8, len: usize) -> u64;
    fn lind_copy_words(to: *mut u8, from: *const u8, words: usize) -> u64;
    fn lind_copy_take_answer(to: *mut LindAnswer, from: *mut u8) -> u64;
    fn lind_copy_own_call(to: *mut u8, nr: u32, caller: u32, target: u32, values: *const Word, owner: u32) -> u64;
    fn lind_copy_call(
        to: *mut u8,
        nr: u32,
        caller: u32,
        target: u32,
        values: *const Word,
        owners: *const CageId,
    ) -> u64;
    fn lind_copy_fill(to: *mut u8, byte: u32, len: usize) -> u64;
    fn lind_copy_load_u32(word: *mut u32, old: *mut u32) -> u64;
    fn lind_copy_swap_u32(word: *mut u32, new: u32, old: *mut u32) -> u64;
    fn lind_copy_cmpxchg_u32(word: *mut u32, expected: u32, new: u32, old: *mut u32) -> u64;
}

/// The address at which to continue after a fault at `pc`, if `pc` is in a copy routine.
pub(super) fn fixup(pc: usize) -> Option<usize> {
    let begin = (&raw const lind_copy_begin) as usize;
    let end = (&raw const lind_copy_end) as usize;
    (begin..end).contains(&pc).then_some((&raw const lind_copy_fault) as usize)
}

fn outcome(fault: u64) -> Result<()> {
    if fault == 0 { Ok(()) } else { Err(Errno::EFAULT) }
}

/// # Safety
/// Each side is either valid for `len` bytes or in a guest's reservation.
#[inline]
pub(super) unsafe fn bytes(to: *mut u8, from: *const u8, len: usize) -> Result<()> {
    // SAFETY: the caller's contract; faults in a reservation come back as 1.
    outcome(unsafe { lind_copy_bytes(to, from, len) })
}

/// Copies a value that was just put together: 8 bytes at a time, since a wider load of what
/// narrower stores wrote a moment ago waits for them to reach the cache. A profile showed the wait;
/// it was not timed on its own.
///
/// # Safety
/// As for [`bytes`]; `words` is not 0.
#[inline]
pub(super) unsafe fn words(to: *mut u8, from: *const u8, words: usize) -> Result<()> {
    // SAFETY: the caller's contract; faults in a reservation come back as 1.
    outcome(unsafe { lind_copy_words(to, from, words) })
}

/// Reads a `struct lind_answer` and takes it away: its length becomes 0.
///
/// # Safety
/// `from` is in a guest's reservation.
#[inline]
pub(super) unsafe fn take_answer(from: *mut u8) -> Result<LindAnswer> {
    const { assert!(size_of::<LindAnswer>() == 56 && offset_of!(LindAnswer, length) == 32) };
    let mut answer = MaybeUninit::uninit();
    // SAFETY: the caller's contract; without a fault all of the answer was written.
    unsafe {
        outcome(lind_copy_take_answer(answer.as_mut_ptr(), from))?;
        Ok(answer.assume_init())
    }
}

/// Writes a call as a `struct lind_call`: once, and not by way of a copy that would have to be read
/// back. An argument and its owner are one store, since grates load them as one: a wide load waits
/// for two narrow stores.
///
/// # Safety
/// `to` has room for one in a guest's reservation.
#[inline]
pub(super) unsafe fn call(to: *mut u8, call: &Call<'_>) -> Result<()> {
    let (nr, caller, target, values) = (call.nr, call.caller.0, call.target.0, call.values.as_ptr());
    // SAFETY: the caller's contract; there are six values and six owners.
    outcome(unsafe {
        match &call.owners {
            Owners::All(owner) => lind_copy_own_call(to, nr, caller, target, values, owner.0),
            Owners::Each(owners) => lind_copy_call(to, nr, caller, target, values, owners.as_ptr()),
        }
    })
}

/// # Safety
/// As for [`bytes`].
pub(super) unsafe fn fill(to: *mut u8, byte: u8, len: usize) -> Result<()> {
    // SAFETY: the caller's contract.
    outcome(unsafe { lind_copy_fill(to, u32::from(byte), len) })
}

/// # Safety
/// `word` is aligned and in a guest's reservation.
pub(super) unsafe fn load_u32(word: *mut u32) -> Result<u32> {
    let mut old = 0;
    // SAFETY: the caller's contract; `old` is a local.
    outcome(unsafe { lind_copy_load_u32(word, &raw mut old) })?;
    Ok(old)
}

/// # Safety
/// As for [`load_u32`].
pub(super) unsafe fn swap_u32(word: *mut u32, new: u32) -> Result<u32> {
    let mut old = 0;
    // SAFETY: the caller's contract; `old` is a local.
    outcome(unsafe { lind_copy_swap_u32(word, new, &raw mut old) })?;
    Ok(old)
}

/// # Safety
/// As for [`load_u32`].
pub(super) unsafe fn compare_exchange_u32(word: *mut u32, expected: u32, new: u32) -> Result<u32> {
    let mut old = 0;
    // SAFETY: the caller's contract; `old` is a local.
    outcome(unsafe { lind_copy_cmpxchg_u32(word, expected, new, &raw mut old) })?;
    Ok(old)
}
