//! Sealed memory files: they are filled and then sealed, and no holder of a descriptor can change
//! them any more.

use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::{MemfdFlags, SealFlags};

/// An empty file, to be filled and then [sealed](seal). The name is what /proc of the host shows.
///
/// # Errors
/// EMFILE, ENFILE, ENOMEM, as memfd_create(2) has them.
pub fn create(name: &CStr) -> rustix::io::Result<OwnedFd> {
    rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
}

/// Seals the file's bytes and its length. No process may have a writable mapping of it: an existing
/// one would stay writable.
///
/// F_SEAL_WRITE would look for such mappings itself, but it is EBUSY as long as anything of the
/// host's, such as its own compaction of memory, holds a page of the file, after having waited for
/// up to 150 ms.
///
/// # Errors
/// None that are known, of a file of [`create`]'s.
pub fn seal(file: impl AsFd) -> rustix::io::Result<()> {
    let all = SealFlags::SEAL | SealFlags::SHRINK | SealFlags::GROW | SealFlags::FUTURE_WRITE;
    rustix::fs::fcntl_add_seals(file, all)
}

#[cfg(test)]
#[allow(unsafe_code, reason = "mappings are made by hand")]
mod tests {
    use std::os::fd::AsRawFd;

    use rustix::io::Errno;
    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

    use super::*;

    #[test]
    fn what_is_sealed_keeps_its_bytes() {
        let file = create(c"test").unwrap();
        rustix::io::pwrite(&file, b"ice", 0).unwrap();
        seal(&file).unwrap();
        assert_eq!(rustix::io::pwrite(&file, b"fire", 0), Err(Errno::PERM));
        assert_eq!(rustix::fs::ftruncate(&file, 0), Err(Errno::PERM));
        assert_eq!(rustix::fs::ftruncate(&file, 9), Err(Errno::PERM));
        let hole = rustix::fs::FallocateFlags::PUNCH_HOLE | rustix::fs::FallocateFlags::KEEP_SIZE;
        assert_eq!(rustix::fs::fallocate(&file, hole, 0, 3), Err(Errno::PERM));
        assert_eq!(rustix::fs::fcntl_add_seals(&file, SealFlags::WRITE), Err(Errno::PERM));
        let map = |prot| {
            // SAFETY: a new mapping at an address of the host's choosing.
            unsafe { mmap(std::ptr::null_mut(), 4096, prot, MapFlags::SHARED, &file, 0) }
        };
        assert_eq!(map(ProtFlags::READ | ProtFlags::WRITE), Err(Errno::PERM));
        let page = map(ProtFlags::READ).unwrap();
        // SAFETY: a mapping of ours of one page, which nothing refers to; then it goes.
        unsafe {
            assert_eq!(rustix::mm::mprotect(page, 4096, rustix::mm::MprotectFlags::WRITE), Err(Errno::ACCESS));
            munmap(page, 4096).unwrap();
        }
        let mut bytes = [0; 4];
        assert_eq!(rustix::io::pread(&file, &mut bytes, 0), Ok(3));
        assert_eq!(&bytes, b"ice\0");
    }

    #[test]
    fn a_page_that_the_host_holds_is_no_hindrance() {
        let file = create(c"test").unwrap();
        rustix::fs::ftruncate(&file, 4096).unwrap();
        let (read, write) = rustix::pipe::pipe().unwrap();
        // SAFETY: a new mapping of one page, whose memory goes to a pipe and which nothing else
        // refers to; then it goes.
        unsafe {
            let both = ProtFlags::READ | ProtFlags::WRITE;
            let page = mmap(std::ptr::null_mut(), 4096, both, MapFlags::SHARED, &file, 0).unwrap();
            page.cast::<u8>().write(b'x');
            let part = libc::iovec { iov_base: page, iov_len: 4096 };
            assert_eq!(libc::vmsplice(write.as_raw_fd(), &raw const part, 1, 0), 4096);
            munmap(page, 4096).unwrap();
        }
        assert_eq!(rustix::fs::fcntl_add_seals(&file, SealFlags::WRITE), Err(Errno::BUSY), "the pipe holds it");
        seal(&file).unwrap();
        assert_eq!(rustix::io::pwrite(&file, b"y", 0), Err(Errno::PERM));
        drop(read);
    }
}
