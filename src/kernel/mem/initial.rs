//! Initial data of a program: pages of its file, mapped privately into every cage that runs it.

use std::ops::Range;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use lind_abi::{Errno, Result};

use super::frozen::{Layer, Piece};

/// Data that no cage has written to yet. The default is none: the program writes its data itself.
#[derive(Default)]
pub struct InitialData {
    pieces: Arc<[Piece]>,
}

impl InitialData {
    /// `spans` of `file`: their addresses in memory, and their offsets in the file. The bytes of
    /// the file must never change.
    pub fn new(file: OwnedFd, spans: impl IntoIterator<Item = (Range<u64>, u64)>) -> InitialData {
        let layer = Arc::new(Layer::of_program(file));
        let piece = |(at, offset)| Piece { at, layer: Arc::clone(&layer), offset };
        InitialData { pieces: spans.into_iter().map(piece).collect() }
    }

    /// The pieces, if they are ascending, apart, and in `data`.
    ///
    /// # Errors
    /// ENOEXEC.
    pub(super) fn within(&self, data: Range<u64>) -> Result<&Arc<[Piece]>> {
        let mut from = data.start;
        for Range { start, end } in self.pieces.iter().map(|piece| piece.at.clone()) {
            if start < from || end <= start || end > data.end {
                return Err(Errno::ENOEXEC);
            }
            from = end;
        }
        Ok(&self.pieces)
    }
}
