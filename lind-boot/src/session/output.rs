//! The output of a command that the session keeps: the last bytes of its pipes or its terminal, in
//! the order in which they were read. Clients follow it by the number of bytes before.

use std::collections::VecDeque;

/// The bytes that are kept unless the client asks for another number, and the least and the most.
pub const KEPT: usize = 256 << 10;
const LEAST: usize = 4 << 10;
const MOST: usize = 4 << 20;

/// The most bytes of a piece.
const PIECE: usize = 64 << 10;

/// The file that output was written to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stream {
    /// Descriptor 1.
    Out,
    /// Descriptor 2.
    Error,
    /// The terminal.
    Terminal,
}

impl Stream {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Stream::Out => "stdout",
            Stream::Error => "stderr",
            Stream::Terminal => "terminal",
        }
    }
}

/// Kept output.
pub struct Output {
    pieces: VecDeque<(Stream, Vec<u8>)>,
    /// The numbers of the first kept byte, and of the next.
    start: u64,
    end: u64,
    room: usize,
    /// The most bytes that are taken at all.
    most: u64,
    dropped: u64,
}

/// A part of the output, for a client.
#[derive(PartialEq, Eq, Debug)]
pub struct Part<'a> {
    /// The number of bytes before it.
    pub at: u64,
    /// Its file.
    pub stream: Stream,
    /// Its bytes.
    pub bytes: &'a [u8],
}

impl Output {
    /// No output yet. The last `kept` bytes are kept, and at most `most` are taken.
    pub fn new(kept: Option<usize>, most: Option<u64>) -> Output {
        Output {
            pieces: VecDeque::new(),
            start: 0,
            end: 0,
            room: kept.unwrap_or(KEPT).clamp(LEAST, MOST),
            most: most.unwrap_or(u64::MAX),
            dropped: 0,
        }
    }

    /// Takes bytes. Those beyond the most are dropped, and the oldest go where room is needed.
    pub fn add(&mut self, stream: Stream, bytes: &[u8]) {
        let left = usize::try_from(self.most - self.end).unwrap_or(usize::MAX);
        let (taken, beyond) = bytes.split_at(left.min(bytes.len()));
        self.dropped += beyond.len() as u64;
        self.end += taken.len() as u64;
        match self.pieces.back_mut().filter(|(last, piece)| *last == stream && piece.len() + taken.len() <= PIECE) {
            Some((_, piece)) => piece.extend(taken),
            None => self.pieces.extend(taken.chunks(PIECE).map(|piece| (stream, piece.to_vec()))),
        }
        while self.kept() > self.room {
            let over = self.kept() - self.room;
            let Some((_, first)) = self.pieces.front_mut() else { return };
            let gone = over.min(first.len());
            first.drain(..gone);
            self.start += gone as u64;
            if first.is_empty() {
                self.pieces.pop_front();
            }
        }
    }

    /// Makes room for the rest of a command's output, which is bounded, beside what is kept.
    pub fn grow(&mut self, count: usize) {
        self.room += count;
    }

    /// The number of kept bytes.
    pub fn kept(&self) -> usize {
        usize::try_from(self.end - self.start).unwrap_or(usize::MAX)
    }

    /// The number of the next byte.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The number of bytes that were dropped, because they were more than the most.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The number of bytes that can be taken without losing some that a client at `at` has not got.
    pub fn space(&self, at: u64) -> usize {
        let unseen = usize::try_from(self.end.saturating_sub(at)).unwrap_or(usize::MAX);
        if self.end == self.most { self.room } else { self.room.saturating_sub(unseen) }
    }

    /// The next part for a client that is at `at`; later than that where the bytes were lost.
    pub fn after(&self, at: u64) -> Option<Part<'_>> {
        let mut begin = self.start;
        for (stream, piece) in &self.pieces {
            let end = begin + piece.len() as u64;
            if at < end {
                let skipped = usize::try_from(at.saturating_sub(begin)).unwrap_or(usize::MAX);
                return Some(Part { at: begin.max(at), stream: *stream, bytes: piece.get(skipped..)? });
            }
            begin = end;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(output: &Output, mut at: u64) -> Vec<(u64, Stream, Vec<u8>)> {
        let mut parts = Vec::new();
        while let Some(part) = output.after(at) {
            at = part.at + part.bytes.len() as u64;
            parts.push((part.at, part.stream, part.bytes.to_vec()));
        }
        parts
    }

    #[test]
    fn the_last_bytes_are_kept_in_order() {
        let mut output = Output { room: 6, ..Output::new(None, None) };
        output.add(Stream::Out, b"abc");
        output.add(Stream::Error, b"de");
        output.add(Stream::Error, b"f");
        assert_eq!(all(&output, 0), [(0, Stream::Out, b"abc".to_vec()), (3, Stream::Error, b"def".to_vec())]);
        assert_eq!(all(&output, 4), [(4, Stream::Error, b"ef".to_vec())]);
        assert_eq!((output.space(0), output.space(1), output.space(99)), (0, 1, 6));
        assert!(output.after(6).is_none() && output.after(99).is_none());
        output.add(Stream::Out, b"ghijk");
        assert_eq!(all(&output, 0), [(5, Stream::Error, b"f".to_vec()), (6, Stream::Out, b"ghijk".to_vec())]);
        assert_eq!((output.kept(), output.end()), (6, 11));
        output.add(Stream::Terminal, &[7; 20]);
        assert_eq!(all(&output, 3), [(25, Stream::Terminal, vec![7; 6])]);
    }

    #[test]
    fn no_more_than_the_most_is_taken() {
        let mut output = Output::new(None, Some(4));
        output.add(Stream::Out, b"abcdef");
        output.add(Stream::Error, b"g");
        assert_eq!(all(&output, 0), [(0, Stream::Out, b"abcd".to_vec())]);
        assert_eq!((output.dropped(), output.space(0)), (3, KEPT));
    }
}
