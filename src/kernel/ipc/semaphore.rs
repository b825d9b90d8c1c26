//! Semaphore sets.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use lind_abi::layout::SemidDs;
use lind_abi::{CageId, Errno, Result};

use super::{Permissions, now};
use crate::event::Event;

/// SEMVMX
pub(crate) const HIGHEST: u16 = 32767;
/// SEMMSL
pub(crate) const MOST_IN_SET: usize = 32000;
/// SEMOPM
pub(crate) const MOST_OPERATIONS: u64 = 500;
/// The approximate memory of one note that a semaphore is to be given back.
pub(crate) const UNDO: u64 = 32;
const IPC_NOWAIT: i16 = 0o4000;
const SEM_UNDO: i16 = 0x1000;

/// One semaphore.
#[derive(Clone, Debug, Default)]
pub(crate) struct Semaphore {
    pub value: u16,
    /// The process that changed it last.
    pub by: u32,
    /// How many wait for it to grow.
    pub growing: u32,
    /// How many wait for it to be zero.
    pub zero: u32,
}

/// A set of semaphores.
#[derive(Debug)]
pub(crate) struct Set {
    pub semaphores: Vec<Semaphore>,
    /// The amounts to give back when a cage ends, by semaphore, where they are not 0.
    undo: BTreeMap<(u16, CageId), i32>,
    /// The cage that is charged for the semaphores. The note for giving something back is charged
    /// to the cage that has to do so.
    payer: CageId,
    operated: i64,
    /// Happens when a value changes or the set goes.
    pub changed: Arc<Event>,
}

/// struct sembuf
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    pub index: u16,
    pub change: i16,
    pub flags: i16,
}

/// The outcome of trying operations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tried {
    /// All were done.
    Done,
    /// None was: this one has to wait.
    Waits {
        /// The index of the semaphore.
        index: usize,
        /// Whether it waits for zero, rather than for growth.
        zero: bool,
    },
}

impl Set {
    /// Semaphores of value 0.
    ///
    /// # Errors
    /// EINVAL for none or too many.
    pub fn new(count: i32, payer: CageId) -> Result<Set> {
        let count = Set::check_count(count)?;
        let semaphores = vec![Semaphore::default(); count];
        Ok(Set { semaphores, undo: BTreeMap::new(), payer, operated: 0, changed: Arc::default() })
    }

    /// How many semaphores a set is asked for.
    ///
    /// # Errors
    /// As `new`.
    pub fn check_count(count: i32) -> Result<usize> {
        usize::try_from(count).ok().filter(|count| (1..=MOST_IN_SET).contains(count)).ok_or(Errno::EINVAL)
    }

    /// The approximate memory of so many semaphores.
    pub fn cost(count: usize) -> u64 {
        const ITSELF: u64 = 512;
        ITSELF + (count * size_of::<Semaphore>()) as u64
    }

    /// The cages that are charged for the set, and how much, as long as it exists.
    pub fn charges(&self) -> impl Iterator<Item = (CageId, u64)> {
        let notes = self.undo.keys().map(|&(_, cage)| (cage, UNDO));
        std::iter::once((self.payer, Set::cost(self.semaphores.len()))).chain(notes)
    }

    /// Has `heir` pay for it if `cage` does. Returns how much that is.
    pub fn leave_to(&mut self, cage: CageId, heir: CageId) -> u64 {
        if self.payer != cage {
            return 0;
        }
        self.payer = heir;
        Set::cost(self.semaphores.len())
    }

    /// Does all operations or none. `charge` gets the bytes that the cage is charged for the
    /// amounts it has to give back; negative if it has fewer of them.
    ///
    /// # Errors
    /// EFBIG, ERANGE; EAGAIN instead of waiting with IPC_NOWAIT; the errors of `charge`.
    pub fn try_all(
        &mut self,
        cage: CageId,
        operations: &[Operation],
        charge: impl FnOnce(i64) -> Result<()>,
    ) -> Result<Tried> {
        let mut values: HashMap<usize, i32> = HashMap::new();
        for operation in operations {
            let index = usize::from(operation.index);
            let semaphore = self.semaphores.get(index).ok_or(Errno::EFBIG)?;
            let value = values.entry(index).or_insert(i32::from(semaphore.value));
            let new = *value + i32::from(operation.change);
            let zero = operation.change == 0;
            if (zero && *value != 0) || new < 0 {
                return if operation.flags & IPC_NOWAIT != 0 {
                    Err(Errno::EAGAIN)
                } else {
                    Ok(Tried::Waits { index, zero })
                };
            }
            if new > i32::from(HIGHEST) {
                return Err(Errno::ERANGE);
            }
            *value = new;
        }
        self.note_undo(cage, operations, charge)?;
        for (index, value) in values {
            let semaphore = &mut self.semaphores[index];
            semaphore.value = u16::try_from(value).unwrap_or(0);
            semaphore.by = cage.0;
        }
        self.operated = now();
        self.changed.notify_all();
        Ok(Tried::Done)
    }

    /// Notes what is to be given back of operations that are going to be done.
    fn note_undo(
        &mut self,
        cage: CageId,
        operations: &[Operation],
        charge: impl FnOnce(i64) -> Result<()>,
    ) -> Result<()> {
        let mut owed: BTreeMap<u16, i32> = BTreeMap::new();
        for operation in operations.iter().filter(|op| op.flags & SEM_UNDO != 0 && op.change != 0) {
            let before = || self.undo.get(&(operation.index, cage)).copied().unwrap_or(0);
            let sum = owed.entry(operation.index).or_insert_with(before);
            *sum -= i32::from(operation.change);
            // SEMAEM
            if sum.unsigned_abs() > u32::from(HIGHEST) + u32::from(*sum < 0) {
                return Err(Errno::ERANGE);
            }
        }
        let more: i64 = owed
            .iter()
            .map(|(&index, &sum)| i64::from(sum != 0) - i64::from(self.undo.contains_key(&(index, cage))))
            .sum();
        if more != 0 {
            charge(more * UNDO.cast_signed())?;
        }
        for (index, sum) in owed {
            if sum == 0 {
                self.undo.remove(&(index, cage));
            } else {
                self.undo.insert((index, cage), sum);
            }
        }
        Ok(())
    }

    /// How many wait for a semaphore to be zero, or to grow. It was there when they began to.
    pub fn waiting(&mut self, index: usize, zero: bool) -> &mut u32 {
        let semaphore = &mut self.semaphores[index];
        if zero { &mut semaphore.zero } else { &mut semaphore.growing }
    }

    /// SETVAL. Notes of undoing for it are dropped: returns the cages that were charged for them,
    /// [`UNDO`] bytes each.
    ///
    /// # Errors
    /// EINVAL for no such semaphore, ERANGE.
    pub fn set_value(&mut self, cage: CageId, index: usize, value: u32) -> Result<Vec<CageId>> {
        let semaphore = self.semaphores.get_mut(index).ok_or(Errno::EINVAL)?;
        semaphore.value = u16::try_from(value).ok().filter(|&value| value <= HIGHEST).ok_or(Errno::ERANGE)?;
        semaphore.by = cage.0;
        self.changed.notify_all();
        let index = u16::try_from(index).map_err(|_| Errno::EINVAL)?;
        let noted = self.undo.range((index, CageId(0))..=(index, CageId(u32::MAX)));
        let cages: Vec<_> = noted.map(|(&(_, cage), _)| cage).collect();
        for &cage in &cages {
            self.undo.remove(&(index, cage));
        }
        Ok(cages)
    }

    /// Gives back what a cage took with SEM_UNDO. Returns how many notes of that are gone, for each
    /// of which the cage was charged [`UNDO`] bytes.
    pub fn undo(&mut self, cage: CageId) -> usize {
        let mut notes = 0;
        for ((index, _), change) in self.undo.extract_if(.., |(_, other), _| *other == cage) {
            notes += 1;
            let Some(semaphore) = self.semaphores.get_mut(usize::from(index)) else { continue };
            let value = (i32::from(semaphore.value) + change).clamp(0, HIGHEST.into());
            semaphore.value = u16::try_from(value).unwrap_or(0);
            semaphore.by = cage.0;
        }
        if notes > 0 {
            self.operated = now();
            self.changed.notify_all();
        }
        notes
    }

    /// IPC_STAT.
    pub fn to_guest(&self, permissions: &Permissions) -> SemidDs {
        SemidDs {
            perm: permissions.to_guest(),
            otime: self.operated,
            ctime: permissions.changed,
            nsems: u16::try_from(self.semaphores.len()).unwrap_or(u16::MAX),
            ..SemidDs::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Operations on one set by a few cages, against plain numbers.
    #[test]
    fn random_operations_agree_with_numbers() {
        let mut state = 7_u64;
        let mut below = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % limit
        };
        let mut set = Set::new(3, CageId(1)).unwrap();
        let mut charged: HashMap<u32, i64> = HashMap::new();
        let mut values = [0_i32; 3];
        let mut owed: HashMap<u32, [i32; 3]> = HashMap::new();
        for _ in 0..20_000 {
            let cage = 1 + u32::try_from(below(3)).unwrap();
            if below(20) == 0 {
                set.undo(CageId(cage));
                charged.remove(&cage);
                for (value, change) in values.iter_mut().zip(owed.remove(&cage).unwrap_or_default()) {
                    *value = (*value + change).clamp(0, 32767);
                }
            }
            let operations: Vec<_> = (0..1 + below(3))
                .map(|_| Operation {
                    index: u16::try_from(below(3)).unwrap(),
                    change: i16::try_from(below(7)).unwrap() - 3,
                    flags: if below(2) == 0 { SEM_UNDO } else { 0 } | if below(2) == 0 { IPC_NOWAIT } else { 0 },
                })
                .collect();
            let mut after = values;
            let mut debt = owed.get(&cage).copied().unwrap_or_default();
            let possible = operations.iter().all(|op| {
                let value = &mut after[usize::from(op.index)];
                let fits = if op.change == 0 { *value == 0 } else { *value + i32::from(op.change) >= 0 };
                *value += i32::from(op.change);
                if op.flags & SEM_UNDO != 0 {
                    debt[usize::from(op.index)] -= i32::from(op.change);
                }
                fits
            });
            let done = set.try_all(CageId(cage), &operations, |bytes| {
                *charged.entry(cage).or_default() += bytes;
                Ok(())
            });
            assert_eq!(done == Ok(Tried::Done), possible, "{operations:?} on {values:?}");
            if possible {
                values = after;
                owed.insert(cage, debt);
            }
            assert_eq!(set.semaphores.iter().map(|s| i32::from(s.value)).collect::<Vec<_>>(), values);
            let debts = owed.iter().flat_map(|(&cage, debt)| debt.iter().map(move |&sum| (cage, i64::from(sum != 0))));
            let mut notes: HashMap<u32, i64> = HashMap::new();
            debts.for_each(|(cage, one)| *notes.entry(cage).or_default() += one * UNDO.cast_signed());
            assert!((1..=3).all(|cage| notes.get(&cage).unwrap_or(&0) == charged.get(&cage).unwrap_or(&0)));
        }
    }
}
