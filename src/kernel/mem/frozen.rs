//! Frozen pages: pages that are mapped, privately, from a file that nothing writes any more: one
//! that forks have filled (docs/fork.md, "Memory"), or the program's own file (docs/startup.md,
//! "Data").
//!
//! A plain data structure, kept beside the map of regions: a region says what the guest sees, a
//! piece says which of its pages come from a [`Layer`]. Pieces never overlap.

use std::collections::BTreeMap;
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{host, sealed};
use lind_abi::{Errno, Result};

/// A file of frozen pages, which goes with the last space that has pieces of it.
pub struct Layer {
    file: OwnedFd,
    made: Option<Made>,
}

/// A layer that a fork has made. Its file was sealed before anything mapped it, and has no name.
struct Made {
    len: u64,
    _permit: Permit,
}

impl Layer {
    /// The file, for mapping it.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// A program's file, which exists whether or not a space has pieces of it. It must never
    /// change.
    pub fn of_program(file: OwnedFd) -> Layer {
        Layer { file, made: None }
    }

    /// Whether it is a program's file.
    pub fn is_program(&self) -> bool {
        self.made.is_none()
    }

    /// Bytes that are kept for its sake.
    pub fn kept(&self) -> u64 {
        self.made.as_ref().map_or(0, |made| made.len)
    }
}

/// How many layers there are, each of which holds a descriptor of the host's.
#[derive(Clone, Default)]
pub struct Layers(Arc<AtomicUsize>);

struct Permit(Layers);

impl Layers {
    /// The most there may be. Beyond it, pages are copied.
    const MOST: usize = 128;

    fn permit(&self) -> Option<Permit> {
        let more = |count| (count < Layers::MOST).then_some(count + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| Permit(self.clone()))
    }

    /// Makes one of `len` bytes; `fill` writes it, and keeps no mapping of it.
    ///
    /// # Errors
    /// EMFILE at the limit of layers; the host's errors.
    pub fn make(&self, len: u64, fill: impl FnOnce(BorrowedFd<'_>) -> Result<()>) -> Result<Layer> {
        let permit = self.permit().ok_or(Errno::EMFILE)?;
        let file = sealed::create(c"frozen").map_err(host::errno)?;
        rustix::fs::ftruncate(&file, len).map_err(host::errno)?;
        fill(file.as_fd())?;
        sealed::seal(&file).map_err(host::errno)?;
        Ok(Layer { file, made: Some(Made { len, _permit: permit }) })
    }

    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Pages that come from one layer, one after the other.
#[derive(Clone)]
pub struct Piece {
    /// Their addresses.
    pub at: Range<u64>,
    /// The layer that they come from.
    pub layer: Arc<Layer>,
    /// Their offset in it.
    pub offset: u64,
}

impl Piece {
    /// The part of it that lies in `to`, which it touches.
    pub fn clip(&self, to: &Range<u64>) -> Piece {
        let at = self.at.start.max(to.start)..self.at.end.min(to.end);
        Piece { offset: self.offset + (at.start - self.at.start), layer: Arc::clone(&self.layer), at }
    }

    fn goes_on_as(&self, next: &Piece) -> bool {
        let joined = self.at.end == next.at.start && self.offset + (self.at.end - self.at.start) == next.offset;
        joined && Arc::ptr_eq(&self.layer, &next.layer)
    }
}

/// The frozen pages of a space.
#[derive(Default)]
pub struct Frozen {
    /// The pieces, by start.
    pieces: BTreeMap<u64, Piece>,
}

impl Frozen {
    /// How many pieces there are.
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Whether there are none.
    #[cfg(test)]
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// The parts of pieces that lie in `range`, ascending.
    pub fn parts(&self, range: Range<u64>) -> impl Iterator<Item = Piece> {
        let before = self.pieces.range(..range.start).next_back().map(|(_, piece)| piece);
        // A reversed range would panic; it has no parts.
        let inside = self.pieces.range(range.start..range.end.max(range.start)).map(|(_, piece)| piece);
        let reaches = move |piece: &&Piece| piece.at.end > range.start && piece.at.start < range.end;
        let range = range.clone();
        before.into_iter().chain(inside).filter(reaches).map(move |piece| piece.clip(&range))
    }

    /// How many bytes of `range` are frozen.
    pub fn bytes(&self, range: Range<u64>) -> u64 {
        self.parts(range).map(|piece| piece.at.end - piece.at.start).sum()
    }

    /// The layers that forks have made, each with its bytes here.
    pub fn layers(&self) -> Vec<(Arc<Layer>, u64)> {
        let mut found: Vec<(Arc<Layer>, u64)> = Vec::new();
        for piece in self.pieces.values().filter(|piece| piece.layer.made.is_some()) {
            let bytes = piece.at.end - piece.at.start;
            match found.iter_mut().find(|(layer, _)| Arc::ptr_eq(layer, &piece.layer)) {
                Some((_, total)) => *total += bytes,
                None => found.push((Arc::clone(&piece.layer), bytes)),
            }
        }
        found
    }

    /// Forgets what is in `range`; pieces that reach beyond are cut.
    pub fn carve(&mut self, range: Range<u64>) {
        let parts: Vec<_> = self.parts(range).map(|part| part.at).collect();
        for part in parts {
            let (&start, _) = self.pieces.range(..=part.start).next_back().expect("a part lies in a piece");
            let whole = self.pieces.remove(&start).expect("just found");
            for rest in [whole.at.start..part.start, part.end..whole.at.end] {
                if !rest.is_empty() {
                    self.pieces.insert(rest.start, whole.clip(&rest));
                }
            }
        }
    }

    /// Puts a piece where none is, and joins it with neighbours that it goes on from or as.
    pub fn insert(&mut self, mut piece: Piece) {
        debug_assert!(!piece.at.is_empty() && self.parts(piece.at.clone()).next().is_none());
        if let Some(before) = self.pieces.range(..piece.at.start).next_back().map(|(_, before)| before.clone())
            && before.goes_on_as(&piece)
        {
            self.pieces.remove(&before.at.start);
            piece = Piece { at: before.at.start..piece.at.end, ..before };
        }
        if let Some(after) = self.pieces.get(&piece.at.end)
            && piece.goes_on_as(after)
        {
            let end = after.at.end;
            self.pieces.remove(&piece.at.end);
            piece.at.end = end;
        }
        self.pieces.insert(piece.at.start, piece);
    }
}

#[cfg(test)]
mod tests;
