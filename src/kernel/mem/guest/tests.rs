use core::ffi::c_int;

use super::*;

const RW: c_int = libc::PROT_READ | libc::PROT_WRITE;

fn memory() -> GuestMemory {
    install_fault_handler(None);
    let memory = GuestMemory::reserve().unwrap();
    memory.map_anonymous(0x10000, 0x10000, RW).unwrap();
    memory
}

#[test]
fn every_small_length_copies_exactly() {
    let memory = memory();
    let data: Vec<u8> = (0..600_u32).map(|i| u8::try_from(i % 251).unwrap()).collect();
    for len in 0..600 {
        memory.fill(0x10000, 0xee, 1024).unwrap();
        memory.write(0x10007, &data[..len]).unwrap();
        let mut back = vec![0; len + 2];
        memory.read(0x10006, &mut back).unwrap();
        assert_eq!(back[0], 0xee);
        assert_eq!(&back[1..=len], &data[..len], "length {len}");
        assert_eq!(back[len + 1], 0xee);
    }
}

#[test]
fn what_is_not_mapped_is_efault() {
    let memory = memory();
    let mut buf = [0; 300];
    for ptr in [0, 0xfff, 0xffff, 0x1ffff, 0x20000, 0xffff_ffff, 1 << 32, u64::MAX, u64::MAX - 10] {
        for len in [2, 8, 17, 60, 100, 300] {
            assert_eq!(memory.read(ptr, &mut buf[..len]), Err(Errno::EFAULT), "{ptr:#x}+{len}");
            assert_eq!(memory.write(ptr, &buf[..len]), Err(Errno::EFAULT), "{ptr:#x}+{len}");
        }
    }
    assert_eq!(memory.load::<u64>(0), Err(Errno::EFAULT));
    assert_eq!(memory.fill(0x1fff0, 0, 0x20), Err(Errno::EFAULT));
    assert_eq!(memory.read(0, &mut []), Ok(()));
    assert_eq!(memory.range(1 << 32, 0).err(), Some(Errno::EFAULT));
    assert_eq!(memory.range(0xffff_ffff, 1).map(|r| r.len()), Ok(1));
}

#[test]
fn read_only_pages_refuse_writes() {
    let memory = memory();
    memory.protect(0x10000, 0x1000, libc::PROT_READ).unwrap();
    assert_eq!(memory.store(0x10000, &1_u32), Err(Errno::EFAULT));
    assert_eq!(memory.atomic_store(0x10000, 1), Err(Errno::EFAULT));
    assert_eq!(memory.atomic_compare_exchange(0x10000, 0, 1), Err(Errno::EFAULT));
    assert_eq!(memory.atomic_load(0x10000), Ok(0));
    assert_eq!(memory.load::<u32>(0x10000), Ok(0));
}

#[test]
fn a_truncated_file_is_efault() {
    use std::os::fd::AsFd;
    let memory = memory();
    let fd = rustix::fs::memfd_create(c"truncated", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    rustix::fs::ftruncate(&fd, 0x2000).unwrap();
    memory.map_file(0x4000_0000, 0x2000, RW, true, fd.as_fd(), 0).unwrap();
    memory.store(0x4000_1000, &7_u32).unwrap();
    rustix::fs::ftruncate(&fd, 0x1000).unwrap();
    assert_eq!(memory.load::<u32>(0x4000_1000), Err(Errno::EFAULT));
    assert_eq!(memory.atomic_load(0x4000_1000), Err(Errno::EFAULT));
}

#[test]
fn strings_stop_at_the_nul_and_at_page_ends() {
    let memory = memory();
    let mut buf = [MaybeUninit::uninit(); 4096];
    // The NUL is the last mapped byte; the page after it must not be touched.
    memory.write(0x1fffc, b"abc\0").unwrap();
    assert_eq!(memory.read_cstr(0x1fffc, &mut buf), Ok(c"abc"));
    memory.write(0x1fffc, b"abcd").unwrap();
    assert_eq!(memory.read_cstr(0x1fffc, &mut buf), Err(Errno::EFAULT));
    memory.fill(0x10000, b'x', 5000).unwrap();
    assert_eq!(memory.read_cstr(0x10000, &mut buf), Err(Errno::ENAMETOOLONG));
    memory.store(0x10000 + 3000, &0_u8).unwrap();
    assert_eq!(memory.read_cstr(0x10000, &mut buf).unwrap().to_bytes().len(), 3000);
    assert_eq!(memory.read_cstr(0xffff_ffff, &mut buf), Err(Errno::EFAULT));
    assert_eq!(memory.read_cstr(u64::MAX, &mut buf), Err(Errno::EFAULT));
}

#[test]
fn atomics_exchange_and_check_alignment() {
    let memory = memory();
    assert_eq!(memory.atomic_compare_exchange(0x10010, 0, 5), Ok(0));
    assert_eq!(memory.atomic_compare_exchange(0x10010, 0, 6), Ok(5));
    assert_eq!(memory.atomic_load(0x10010), Ok(5));
    assert_eq!(memory.atomic_load(0x10011), Err(Errno::EINVAL));
}

#[test]
fn mappings_move_and_stay_inside() {
    let memory = memory();
    memory.store(0x11000, &42_u64).unwrap();
    memory.move_pages(0x11000, 0x5000_0000, 0x2000).unwrap();
    assert_eq!(memory.load::<u64>(0x5000_0000), Ok(42));
    assert_eq!(memory.load::<u64>(0x11000), Ok(0));
    memory.map_anonymous_shared(0x11000, 0x1000, RW).unwrap();
    memory.store(0x11008, &43_u64).unwrap();
    memory.duplicate_shared(0x11000, 0x6000_0000, 0x1000).unwrap();
    assert_eq!(memory.load::<u64>(0x6000_0008), Ok(43));
    assert_eq!(memory.duplicate_shared(0x12000, 0x6000_0000, 0x1000), Err(Errno::EINVAL));
    assert_eq!(memory.map_anonymous(0xffff_f000, 0x2000, RW), Err(Errno::ENOMEM));
    assert_eq!(memory.map_anonymous(0x1001, 0x1000, RW), Err(Errno::EINVAL));
    assert_eq!(memory.unmap(0x1000, 0), Err(Errno::EINVAL));
    assert_eq!(memory.advise(0x10000, 0x1000, libc::MADV_HWPOISON), Err(Errno::EINVAL));
    memory.unmap_all().unwrap();
    assert_eq!(memory.load::<u64>(0x5000_0000), Err(Errno::EFAULT));
}

#[test]
fn unmapping_under_copies_is_only_efault() {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::{Duration, Instant};
    let memory = memory();
    let faults = AtomicU32::new(0);
    let deadline = Instant::now() + Duration::from_secs(20);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut buf = [0; 0x4000];
            while faults.load(Ordering::Relaxed) < 50 && Instant::now() < deadline {
                if memory.read(0x10000, &mut buf) == Err(Errno::EFAULT) {
                    faults.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        while faults.load(Ordering::Relaxed) < 50 && Instant::now() < deadline {
            memory.unmap(0x10000, 0x4000).unwrap();
            memory.map_anonymous(0x10000, 0x4000, RW).unwrap();
        }
    });
    assert_eq!(faults.into_inner(), 50, "the copies met too few unmapped pages");
}

#[test]
fn a_call_is_written_as_grates_read_it() {
    use lind_abi::layout::LindCall;
    use lind_abi::{CageId, Call, Owners, Word};
    let memory = memory();
    let values = &Word::six(std::array::from_fn(|n| u64::MAX - n as u64));
    let each = Owners::Each([100, 101, 102, u32::MAX, 104, 105].map(CageId));
    for owners in [each, Owners::All(CageId(u32::MAX - 1))] {
        let call = Call { nr: 0xffff_fffe, caller: CageId(7), target: CageId(u32::MAX), values, owners };
        memory.fill(0x10000, 0xee, 200).unwrap();
        memory.store_call(0x10008, &call).unwrap();
        let back: LindCall = memory.load(0x10008).unwrap();
        assert_eq!((back.nr, back.pad, back.caller, back.target), (0xffff_fffe, 0, 7, u64::from(u32::MAX)));
        for (n, read) in back.args.iter().enumerate() {
            let written = call.arg(n);
            assert_eq!((written.value, u64::from(written.cage.0)), (read.value, read.cage), "argument {n}");
        }
        assert_eq!(memory.load::<u64>(0x10000), Ok(0xeeee_eeee_eeee_eeee));
        assert_eq!(memory.load::<u64>(0x10080), Ok(0xeeee_eeee_eeee_eeee));
        assert_eq!(memory.store_call(0x1fff0, &call), Err(Errno::EFAULT));
        assert_eq!(memory.store_call(0xffff_ffff, &call), Err(Errno::EFAULT));
    }
}

#[test]
fn an_answer_is_taken_once() {
    use lind_abi::layout::LindAnswer;
    let memory = memory();
    let left = LindAnswer {
        result: -7,
        to: 1,
        cage: u64::MAX,
        from: 1 << 40,
        length: 0x1234_5678_9abc_def0,
        release: 5,
        part: 6,
    };
    memory.fill(0x10000, 0xee, 200).unwrap();
    memory.store(0x10008, &left).unwrap();
    let taken = memory.take_answer(0x10008).unwrap();
    assert_eq!((taken.result, taken.to, taken.cage), (left.result, left.to, left.cage));
    assert_eq!((taken.from, taken.length), (left.from, left.length));
    assert_eq!((taken.release, taken.part), (left.release, left.part));
    assert_eq!(memory.take_answer(0x10008).unwrap().length, 0);
    assert_eq!(memory.load::<u64>(0x10000), Ok(0xeeee_eeee_eeee_eeee));
    assert_eq!(memory.load::<u64>(0x10040), Ok(0xeeee_eeee_eeee_eeee));
    assert_eq!(memory.take_answer(0x1fff0).err(), Some(Errno::EFAULT));
    assert_eq!(memory.take_answer(0xffff_fff8).err(), Some(Errno::EFAULT));
}
