//! The end of a thread as its memory shows it: set_tid_address(2), and the locks it holds
//! (set_robust_list(2)).

use std::sync::atomic::Ordering;

use lind_abi::layout::RobustList;
use lind_abi::{Errno, Result};

use super::Thread;
use crate::host::futex;
use crate::mem::GuestMemory;

/// The word of a robust futex: its holder, a bit for a dead holder, and a bit for waiters.
const TID: u32 = 0x3fff_ffff;
const OWNER_DIED: u32 = 0x4000_0000;
const WAITERS: u32 = 0x8000_0000;
/// Linux's ROBUST_LIST_LIMIT: a list may be a ring.
const MOST: usize = 2048;
const FUTEX_WAKE: u32 = 1;

impl Thread {
    /// Releases and wakes the words that others wait for. Nobody waits for the end of a cage's last
    /// thread by its word; its locks may lie in memory that other cages share.
    pub(super) fn leave_words(&self, last: bool) {
        if self.worker {
            return;
        }
        let _needed = self.cage.memory.give_back();
        let memory = &self.cage.memory.guest;
        // A guest that has written nonsense there harms only itself.
        let _ = self.leave_locks(memory);
        let word = self.at_end.clear_tid.swap(0, Ordering::AcqRel);
        if word != 0 && !last && memory.store(word, &0_u32).is_ok() {
            let _ = wake(memory, word, 1);
        }
    }

    /// Gives up the locks of a program that is replaced by another. The word of its end lies in
    /// memory that is about to be unmapped.
    pub(super) fn leave_locks_behind(&self) {
        if self.at_end.robust_list.load(Ordering::Acquire) != 0 {
            let _needed = self.cage.memory.give_back();
            let _ = self.leave_locks(&self.cage.memory.guest);
        }
    }

    fn leave_locks(&self, memory: &GuestMemory) -> Result<()> {
        let head = self.at_end.robust_list.swap(0, Ordering::AcqRel);
        if head == 0 {
            return Ok(());
        }
        let list: RobustList = memory.load(head)?;
        let mut entry = list.list;
        for _ in 0..MOST {
            if u64::from(entry & !1) == head {
                break;
            }
            // Read before the lock is given up: its next holder may unlink the entry.
            let next: Result<u32> = memory.load(u64::from(entry & !1));
            if entry != list.pending {
                self.leave_lock(memory, entry, list.offset)?;
            }
            entry = next?;
        }
        if list.pending != 0 { self.leave_lock(memory, list.pending, list.offset) } else { Ok(()) }
    }

    fn leave_lock(&self, memory: &GuestMemory, entry: u32, offset: i32) -> Result<()> {
        let word = u64::from((entry & !1).wrapping_add_signed(offset));
        let mut held = memory.atomic_load(word)?;
        while held & TID == self.tid {
            let died = held & WAITERS | OWNER_DIED;
            let found = memory.atomic_compare_exchange(word, held, died)?;
            if found == held {
                return if held & WAITERS != 0 { wake(memory, word, 1) } else { Ok(()) };
            }
            held = found;
        }
        Ok(())
    }
}

fn wake(memory: &GuestMemory, word: u64, count: u32) -> Result<()> {
    if !word.is_multiple_of(4) {
        return Err(Errno::EINVAL);
    }
    futex::wake(memory.range(word, 4)?, FUTEX_WAKE, count, 0, None, 0).map(drop)
}
