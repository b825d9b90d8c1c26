//! Signatures that show which user compiled a file: one process can make them, and every process of
//! the user can verify them.
//!
//! The user's key is 32 bytes that only the compiler process ever reads (see
//! [`crate::code::serve`]). Three keys are derived from it: the secret that signs compiled code,
//! the public half that verifies it, and a key for notes ([`crate::code::verified`]). A process
//! with the latter two can make notes, but not code; and notes count only in the cache, which the
//! process that runs guests cannot write.

use anyhow::{Result, anyhow};
use ed25519_compact::{KeyPair, PublicKey, SecretKey, Seed};

/// Bytes of a signature.
pub const SIGNATURE: usize = 64;

/// The keys that verify code and notes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Checks {
    public: [u8; 32],
    notes: [u8; 32],
}

/// The secret that signs compiled code.
pub struct Secret {
    signing: SecretKey,
    checks: Checks,
}

impl Secret {
    /// Derives the secret from the user's key.
    ///
    /// # Errors
    /// The key is zero modulo the group's order: one key in 2^256.
    pub fn of(key: &[u8; 32]) -> Result<Secret> {
        let seed = Seed::new(blake3::derive_key("lind-boot signature of compiled code", key));
        let pair =
            KeyPair::try_from_seed(seed).map_err(|error| anyhow!("the key cannot be used for signing: {error}"))?;
        let notes = blake3::derive_key("lind-boot note of a verified module", key);
        Ok(Secret { signing: pair.sk, checks: Checks { public: *pair.pk, notes } })
    }

    /// The keys that verify its signatures.
    pub fn checks(&self) -> Checks {
        self.checks
    }

    /// Signs code with this hash.
    pub fn sign(&self, hash: &blake3::Hash) -> [u8; SIGNATURE] {
        *self.signing.sign(hash.as_bytes(), None)
    }
}

impl Checks {
    /// The number of its bytes.
    pub const BYTES: usize = 64;

    /// The bytes for a file.
    pub fn to_bytes(self) -> [u8; Checks::BYTES] {
        std::array::from_fn(|i| if i < 32 { self.public[i] } else { self.notes[i - 32] })
    }

    /// Reads them from a file's bytes.
    pub fn from_bytes(bytes: &[u8; Checks::BYTES]) -> Checks {
        Checks { public: std::array::from_fn(|i| bytes[i]), notes: std::array::from_fn(|i| bytes[32 + i]) }
    }

    /// Whether the secret that belongs to this signed code with this hash.
    pub fn signed(&self, hash: &blake3::Hash, signature: &[u8; SIGNATURE]) -> bool {
        let signature = ed25519_compact::Signature::new(*signature);
        PublicKey::new(self.public).verify(hash.as_bytes(), &signature).is_ok()
    }

    /// The key that authenticates notes.
    pub fn notes(&self) -> &[u8; 32] {
        &self.notes
    }
}

/// Hashes the bytes to be signed. Nothing else is hashed in this way, so a signature for one
/// purpose is good for no other.
pub fn hasher() -> blake3::Hasher {
    blake3::Hasher::new_derive_key("lind-boot compiled code")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_secret_signs() {
        let (ours, theirs) = (Secret::of(&[1; 32]).unwrap(), Secret::of(&[2; 32]).unwrap());
        let hash = hasher().update(b"code").finalize();
        let good = ours.sign(&hash);
        let checks = Checks::from_bytes(&ours.checks().to_bytes());
        assert!(checks == ours.checks() && checks.signed(&hash, &good));
        assert!(!theirs.checks().signed(&hash, &good) && !checks.signed(&hash, &theirs.sign(&hash)));
        assert!(!checks.signed(&blake3::hash(b"code"), &good));
        for at in 0..SIGNATURE {
            let mut bad = good;
            bad[at] ^= 1;
            assert!(!checks.signed(&hash, &bad), "byte {at}");
        }
        // The bytes that a launcher has do not contain the signing seed.
        assert!(!checks.to_bytes().windows(32).any(|bytes| bytes == &ours.signing.seed()[..]));
    }
}
