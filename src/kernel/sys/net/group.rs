//! Socket options about multicast groups whose structs hold a socket address after one word. The
//! address begins at a multiple of 8 bytes for the host, and of 4 for a guest, whose words are
//! shorter; the rest is the same.

use lind_abi::flags::SockLevel;
use lind_abi::{Errno, Result};

/// The most bytes of such a value: more is ENOBUFS, as with Linux's net.core.optmem_max.
pub(super) const LONGEST: usize = 128 << 10;
/// The word, and what the host has after it.
const WORD: usize = 4;
const PAD: [u8; 4] = [0; 4];

/// Whether an option has such a value: `MCAST_JOIN_GROUP` (42) to `MCAST_MSFILTER` (48).
pub(super) fn has_address(level: SockLevel, option: i32) -> bool {
    matches!(level.0, SockLevel::SOL_IP | SockLevel::SOL_IPV6) && (42..=48).contains(&option)
}

/// The value in the host's layout.
///
/// # Errors
/// EINVAL for one without a whole word.
pub(super) fn widen(guest: &[u8]) -> Result<Vec<u8>> {
    let (word, rest) = guest.split_at_checked(WORD).ok_or(Errno::EINVAL)?;
    Ok([word, &PAD, rest].concat())
}

/// The value in the guest's layout.
pub(super) fn narrow(host: &[u8]) -> Vec<u8> {
    let (word, rest) = host.split_at(WORD.min(host.len()));
    [word, rest.get(PAD.len()..).unwrap_or_default()].concat()
}

#[cfg(test)]
mod tests {
    use super::{narrow, widen};

    #[test]
    fn values_widen_and_narrow() {
        assert!(widen(&[1, 2]).is_err());
        let wide = widen(&[1, 2, 3, 4, 5, 6]).unwrap();
        assert_eq!(wide, [1, 2, 3, 4, 0, 0, 0, 0, 5, 6]);
        assert_eq!(narrow(&wide), [1, 2, 3, 4, 5, 6]);
        assert_eq!(narrow(&wide[..5]), [1, 2, 3, 4]);
        assert!(narrow(&[]).is_empty());
    }
}
