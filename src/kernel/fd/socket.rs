//! State that the kernel keeps for sockets besides the host's.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use super::loopback::Private;
use super::{Token, Who};
use crate::lock::Locked;

/// A socket.
#[derive(Debug, Default)]
pub struct Socket {
    /// The state shared with the other end, if both were made by socketpair(2).
    pub pair: Option<Arc<Pair>>,
    /// The credentials of the other end, if known.
    pub peer: OnceLock<Arc<Who>>,
    /// The credentials of the cage that listens by it, or has connected it under a name of its own.
    pub own: Mutex<Option<Arc<Who>>>,
    /// The sender of the message that was received last.
    pub last: Mutex<Last>,
    /// The name it is bound to as the guest spelled it, if that cannot be read from the host's.
    pub bound: OnceLock<Arc<[u8]>>,
    /// Set once it is a socket of the runner's own loopback.
    pub loopback: OnceLock<Arc<Private>>,
    /// Whether it came or went in a message, so that others may have it too.
    pub travelled: AtomicBool,
}

/// Both ends of a pair.
#[derive(Debug, Default)]
pub struct Pair {
    /// Whether either end has asked for the senders of messages.
    pub asked: AtomicBool,
}

/// The sender of the data that a socket has received last.
#[derive(Clone, Copy, Debug, Default)]
pub enum Last {
    /// Nothing has been received.
    #[default]
    Nothing,
    /// The sender that this token names.
    Token(Token),
    /// The sender is unknown.
    Unknown,
}

/// How names of unix sockets differ between guests and host.
pub struct SocketNames {
    /// The prefix of the host's abstract names, so that cages see their own and not the host's.
    scope: [u8; 8],
    /// The prefix for names that would be too long behind `scope`. No guest can spell either.
    long_scope: [u8; 8],
    /// Guests' names by the host's, if the two differ, as long as a socket has them. Abstract ones
    /// begin with a NUL, on both sides.
    paths: Mutex<HashMap<Vec<u8>, Weak<[u8]>>>,
}

impl SocketNames {
    /// No names, and a scope that no other runner has.
    pub fn new() -> SocketNames {
        let mut scope = [0; 8];
        if rustix::rand::getrandom(&mut scope, rustix::rand::GetRandomFlags::empty()) != Ok(scope.len()) {
            // It is too early in the host's life for random numbers; the process id is different,
            // at least.
            scope = (u64::from(std::process::id()) << 32 | 0x6c69_6e64).to_le_bytes();
        }
        let mut long_scope = scope;
        long_scope[0] = !scope[0];
        SocketNames { scope, long_scope, paths: Mutex::new(HashMap::new()) }
    }

    /// Makes a host path for `name` in some directory, which a guest spells `guest`: it means the
    /// same there, and no other guest path has it, if `longest` bytes are enough.
    pub fn add(&self, name: &[u8], guest: &[u8], longest: usize) -> (Vec<u8>, Arc<[u8]>) {
        let mut paths = self.paths.locked();
        paths.retain(|_, path| path.strong_count() > 0);
        let guest: Arc<[u8]> = guest.into();
        let mut host = name.to_vec();
        let differs = |path: &Weak<[u8]>| path.upgrade().is_some_and(|path| path != guest);
        while paths.get(&host).is_some_and(differs) && host.len() + 2 <= longest {
            host.splice(0..0, *b"./");
        }
        paths.insert(host.clone(), Arc::downgrade(&guest));
        (host, guest)
    }

    /// The host's name for a guest's abstract name, of at most `longest` bytes. (A name begins
    /// behind the NUL.) Behind the scope comes the guest's name, or, if that is too long, its hash,
    /// for which no collisions can be found.
    pub fn abstract_name(&self, guest: &[u8], longest: usize) -> Vec<u8> {
        let name = [&self.scope[..], guest].concat();
        if name.len() <= longest { name } else { [&self.long_scope[..], blake3::hash(guest).as_bytes()].concat() }
    }

    /// Keeps the guest's spelling of an abstract name as long as a socket has it, if it cannot be
    /// read from the host's.
    pub fn keep(&self, host: &[u8], guest: &[u8]) -> Option<Arc<[u8]>> {
        host.strip_prefix(&self.long_scope)?;
        let mut paths = self.paths.locked();
        paths.retain(|_, path| path.strong_count() > 0);
        let host = [b"\0", host].concat();
        if let Some(kept) = paths.get(&host).and_then(Weak::upgrade) {
            return Some(kept);
        }
        let guest: Arc<[u8]> = [b"\0", guest].concat().into();
        paths.insert(host, Arc::downgrade(&guest));
        Some(guest)
    }

    /// The guest's abstract name, with its NUL, for a host's, without; None for a name that does
    /// not belong to a guest. A long name that no socket of ours has any more is empty.
    pub fn guest_abstract(&self, host: &[u8]) -> Option<Vec<u8>> {
        if let Some(name) = host.strip_prefix(&self.scope) {
            return Some([b"\0", name].concat());
        }
        host.strip_prefix(&self.long_scope)?;
        Some(self.guest(&[b"\0", host].concat()).map_or_else(Vec::new, |name| name.to_vec()))
    }

    /// The guest's path for a host path.
    pub fn guest(&self, host: &[u8]) -> Option<Arc<[u8]>> {
        self.paths.locked().get(host).and_then(Weak::upgrade)
    }
}

impl Default for SocketNames {
    fn default() -> Self {
        SocketNames::new()
    }
}
