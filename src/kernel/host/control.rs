//! Control messages of sendmsg(2) and recvmsg(2): cmsg(3).
//!
//! Guests have x86-64's layout, so one encoding serves both sides; only the meaning of a descriptor
//! differs.

use std::os::fd::{FromRawFd, OwnedFd};

use lind_abi::{Errno, Result};

/// The size of struct cmsghdr, and what messages are aligned to.
pub const HEAD: usize = 16;
const ALIGN: usize = 8;
const SCM_PIDFD: i32 = 4;

/// A control message. `F` is a descriptor.
#[derive(Debug, PartialEq, Eq)]
pub enum Control<F> {
    /// SCM_RIGHTS.
    Rights(Vec<F>),
    /// Any other.
    Other {
        /// cmsg_level.
        level: i32,
        /// cmsg_type.
        kind: i32,
        /// The data behind the header.
        data: Vec<u8>,
    },
}

impl<F> Control<F> {
    /// The room it takes in a buffer: CMSG_SPACE.
    pub fn space(&self) -> usize {
        (HEAD + self.size()).next_multiple_of(ALIGN)
    }

    fn size(&self) -> usize {
        match self {
            Control::Rights(fds) => fds.len() * size_of::<i32>(),
            Control::Other { data, .. } => data.len(),
        }
    }
}

/// The bytes of control messages, the last one padded as the others are.
pub fn encode<F>(messages: &[Control<F>], number: impl Fn(&F) -> i32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(messages.iter().map(Control::space).sum());
    for message in messages {
        bytes.extend((HEAD + message.size()).to_le_bytes());
        match message {
            Control::Rights(fds) => {
                bytes.extend(libc::SOL_SOCKET.to_le_bytes());
                bytes.extend(libc::SCM_RIGHTS.to_le_bytes());
                bytes.extend(fds.iter().flat_map(|fd| number(fd).to_le_bytes()));
            }
            Control::Other { level, kind, data } => {
                bytes.extend(level.to_le_bytes());
                bytes.extend(kind.to_le_bytes());
                bytes.extend(data);
            }
        }
        bytes.resize(bytes.len().next_multiple_of(ALIGN), 0);
    }
    bytes
}

/// The control messages in a buffer.
///
/// # Errors
/// EINVAL where a length is not within the buffer. Less than a head at the end is passed over.
pub fn decode(mut bytes: &[u8]) -> Result<Vec<Control<i32>>> {
    let mut messages = Vec::new();
    while let Some((head, _)) = bytes.split_first_chunk::<HEAD>() {
        let (len, kind) = head.split_at(8);
        let len = usize::try_from(u64::from_le_bytes(len.try_into().map_err(|_| Errno::EINVAL)?))
            .map_err(|_| Errno::EINVAL)?;
        let level = word(&kind[..4]);
        let kind = word(&kind[4..]);
        let data = bytes.get(HEAD..len).ok_or(Errno::EINVAL)?;
        messages.push(if (level, kind) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) {
            Control::Rights(data.chunks_exact(4).map(word).collect())
        } else {
            Control::Other { level, kind, data: data.to_vec() }
        });
        bytes = bytes.get(len.next_multiple_of(ALIGN)..).unwrap_or_default();
    }
    Ok(messages)
}

/// The control messages that the host has just written, with the descriptors they brought.
/// SCM_PIDFD is dropped: it names a host process.
pub(super) fn decode_received(bytes: &[u8]) -> Vec<Control<OwnedFd>> {
    // SAFETY: the host has just made this descriptor for the caller, and its number is taken once.
    let take = |number: i32| (number >= 0).then(|| unsafe { OwnedFd::from_raw_fd(number) });
    decode(bytes)
        .unwrap_or_default()
        .into_iter()
        .filter_map(|message| match message {
            Control::Rights(numbers) => Some(Control::Rights(numbers.into_iter().filter_map(take).collect())),
            Control::Other { level: libc::SOL_SOCKET, kind: SCM_PIDFD, data } => {
                drop(data.first_chunk().map(|number| take(i32::from_le_bytes(*number))));
                None
            }
            Control::Other { level, kind, data } => Some(Control::Other { level, kind, data }),
        })
        .collect()
}

fn word(bytes: &[u8]) -> i32 {
    bytes.first_chunk().map_or(0, |word| i32::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<Control<i32>> {
        vec![
            Control::Rights(vec![3, -1, 70_000]),
            Control::Other { level: 0, kind: 8, data: vec![1, 2, 3, 4, 5] },
            Control::Rights(vec![]),
        ]
    }

    #[test]
    fn what_is_encoded_decodes() {
        let bytes = encode(&sample(), |fd| *fd);
        assert_eq!(bytes.len(), sample().iter().map(Control::space).sum::<usize>());
        assert_eq!(decode(&bytes).unwrap(), sample());
        // The last message need not be padded, and a cut-off head behind it is passed over.
        assert_eq!(decode(&bytes[..bytes.len() - HEAD + 15]).unwrap(), sample()[..2]);
    }

    #[test]
    fn lengths_are_claims() {
        for len in [0_u64, 15, 33, 1 << 32, u64::MAX] {
            let mut bytes = encode(&[Control::Rights(vec![1, 2, 3, 4])], |fd| *fd);
            bytes[..8].copy_from_slice(&len.to_le_bytes());
            assert_eq!(decode(&bytes), Err(Errno::EINVAL), "length {len}");
        }
    }

    #[test]
    fn any_bytes_decode_or_fail() {
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33).to_le_bytes()[0]
        };
        for _ in 0..2000 {
            let len = usize::from(random());
            let bytes: Vec<u8> = (0..len).map(|i| if i % 8 == 0 { random() } else { 0 }).collect();
            let _ = decode(&bytes);
        }
    }
}
