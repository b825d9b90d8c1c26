//! The registrations of an epoll instance.
//!
//! Linux knows a registration by the descriptor's number and the open file behind it, and forgets
//! it when the file closes. The host instance does the waiting and the forgetting, but knows ours
//! by host descriptors. Guest numbers that dup made share one of those; so each further number of a
//! file is registered by one of the file's copies ([`File::descriptor`]), which close together with
//! it.

use std::collections::HashMap;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, Weak};

use lind_abi::flags::EpollOp;
use lind_abi::layout::EpollEvent;
use lind_abi::{Errno, Result};

use super::{File, FileRef};
use crate::host;
use crate::lock::Locked;

/// The registrations of an epoll instance.
#[derive(Debug, Default)]
pub struct Interests(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    /// The interests, by the address of the file. Its weak reference keeps that from being used
    /// again.
    files: HashMap<usize, Interest>,
    /// At how many entries those of closed files are dropped next.
    full: usize,
}

/// The events that are waited for, and the value that the waiter gets with them.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// EPOLLIN and the like.
    pub events: u32,
    /// The guest's own word.
    pub data: u64,
}

impl Wanted {
    fn of(event: &EpollEvent) -> Wanted {
        Wanted { events: event.events, data: event.data }
    }
}

#[derive(Debug)]
struct Interest {
    file: Weak<File>,
    /// Guest numbers, each with the host descriptor of the file that is registered for it, and the
    /// events.
    numbers: Vec<(i32, usize, Wanted)>,
}

impl Interests {
    /// epoll_ctl(2) on the host instance `epoll`, for guest descriptor `number`, behind which is
    /// `target`.
    ///
    /// # Errors
    /// ENOSPC when too many numbers of one file are registered; otherwise the errors of
    /// epoll_ctl(2).
    pub fn control(
        &self,
        epoll: BorrowedFd<'_>,
        op: EpollOp,
        number: i32,
        target: &FileRef,
        event: &EpollEvent,
    ) -> Result<()> {
        let mut table = self.0.locked();
        let known = table.files.get(&address(target)).map_or(&[][..], |interest| &interest.numbers);
        let copy = known.iter().find(|(n, ..)| *n == number).map(|(_, copy, _)| *copy);
        match (op.0, copy) {
            (EpollOp::EPOLL_CTL_ADD, None) => {
                let taken = |copy: &usize| known.iter().any(|(_, c, _)| c == copy);
                let copy = (0..=File::COPIES).find(|copy| !taken(copy)).ok_or(Errno::ENOSPC)?;
                host::wait::epoll_ctl(epoll, op.0, target.descriptor(copy)?, event)?;
                table.add(target, number, copy, Wanted::of(event));
                Ok(())
            }
            // The file is registered, by another number only.
            (EpollOp::EPOLL_CTL_MOD | EpollOp::EPOLL_CTL_DEL, None) if !known.is_empty() => Err(Errno::ENOENT),
            (_, copy) => {
                host::wait::epoll_ctl(epoll, op.0, target.descriptor(copy.unwrap_or(0))?, event)?;
                if op.0 == EpollOp::EPOLL_CTL_DEL {
                    table.remove(target, number);
                } else {
                    table.change(target, number, Wanted::of(event));
                }
                Ok(())
            }
        }
    }
}

impl Interests {
    /// Registers a file as it is known here, after its host descriptors have become another
    /// socket's.
    pub fn register_again(&self, epoll: BorrowedFd<'_>, file: &File) {
        let table = self.0.locked();
        for (_, copy, wanted) in table.files.get(&address(file)).into_iter().flat_map(|interest| &interest.numbers) {
            let event = EpollEvent { events: wanted.events, data: wanted.data };
            // A host without room for it would have refused to wait for the first one.
            let _ = file
                .descriptor(*copy)
                .and_then(|host| host::wait::epoll_ctl(epoll, EpollOp::EPOLL_CTL_ADD, host, &event));
        }
    }

    /// The registrations: guest number, events, and the file.
    pub fn list(&self) -> Vec<(i32, Wanted, Arc<File>)> {
        let table = self.0.locked();
        let open = table.files.values().filter_map(|interest| Some((interest.file.upgrade()?, &interest.numbers)));
        let mut list: Vec<_> = open
            .flat_map(|(file, numbers)| {
                numbers.iter().map(move |(number, _, wanted)| (*number, *wanted, Arc::clone(&file)))
            })
            .collect();
        list.sort_unstable_by_key(|(number, ..)| *number);
        list
    }
}

impl Table {
    fn add(&mut self, target: &FileRef, number: i32, copy: usize, wanted: Wanted) {
        if self.files.len() >= self.full {
            self.files.retain(|_, interest| interest.file.strong_count() > 0);
            self.full = (2 * self.files.len()).max(64);
        }
        let new = || Interest { file: std::sync::Arc::downgrade(&target.share()), numbers: Vec::new() };
        self.files.entry(address(target)).or_insert_with(new).numbers.push((number, copy, wanted));
    }

    fn change(&mut self, target: &FileRef, number: i32, wanted: Wanted) {
        let numbers = self.files.get_mut(&address(target)).into_iter().flat_map(|interest| &mut interest.numbers);
        for (_, _, known) in numbers.filter(|(n, ..)| *n == number) {
            *known = wanted;
        }
    }

    fn remove(&mut self, target: &FileRef, number: i32) {
        let Some(interest) = self.files.get_mut(&address(target)) else { return };
        interest.numbers.retain(|(n, ..)| *n != number);
        if interest.numbers.is_empty() {
            self.files.remove(&address(target));
        }
    }
}

fn address(file: &File) -> usize {
    std::ptr::from_ref(file).addr()
}
