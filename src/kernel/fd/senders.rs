//! Senders: identifies the cage at the other end of a unix socket, and the one that sent a message.
//! The host knows one process for all of them.
//!
//! - A socket that connects gets a name, if it has none, which tells who connected it: the host
//!   keeps that until the connection is accepted. No guest can spell such a name, and names of
//!   sockets that other processes connected are not read.
//! - A socket that was connected under a name of its own, or listens, is known here by that name
//!   while it is open.
//! - Once a cage has asked for the senders of messages, messages of unix sockets carry a *token*: a
//!   descriptor of a file that represents the sending cage. It is taken out where the message is
//!   received.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use lind_abi::{Errno, Result};

use super::locks::FileId;
use crate::host::errno;
use crate::lock::Locked;

/// A cage as others see it: its number, user and group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ids {
    /// Its number; 0 if nobody can be named.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
}

/// The credentials of a cage when it connected, listened or made a pair.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Who {
    /// See [`Ids`].
    pub ids: Ids,
    /// Its supplementary groups; if read from a name, only the first [`Who::GROUPS`].
    pub groups: Arc<[u32]>,
}

impl Ids {
    /// Unknown credentials: the user and group ids that mean nobody.
    pub const NOBODY: Ids = Ids { pid: 0, uid: 65534, gid: 65534 };
}

impl Who {
    /// The number of groups that fit into a name.
    const GROUPS: usize = 16;

    /// Unknown credentials.
    pub fn nobody() -> Arc<Who> {
        Arc::new(Who { ids: Ids::NOBODY, groups: Arc::new([]) })
    }

    fn words(&self) -> impl Iterator<Item = u32> {
        let Ids { pid, uid, gid } = self.ids;
        [pid, uid, gid].into_iter().chain(self.groups.iter().copied().take(Who::GROUPS))
    }

    fn of_words(words: &[u8]) -> Option<Who> {
        let mut words = words.chunks_exact(4).map(|word| u32::from_le_bytes(std::array::from_fn(|i| word[i])));
        let ids = Ids { pid: words.next()?, uid: words.next()?, gid: words.next()? };
        Some(Who { ids, groups: words.collect() })
    }
}

/// The meaning of a received token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Token {
    /// This one sent it.
    Sender(Ids),
    /// The cage with this number sent it, with a user and group that it chose and the host
    /// recorded.
    Claimed(u32),
}

/// The senders and connections of a kernel.
pub struct Senders {
    /// The prefix of the names of connected sockets.
    scope: [u8; 8],
    names: AtomicU64,
    /// Whether a socket has asked for the senders of messages, and which ones have: see
    /// [`Senders::ask`].
    asked: AtomicBool,
    asked_anywhere: AtomicBool,
    known: Mutex<HashMap<Vec<u8>, Vec<Weak<Who>>>>,
    tokens: Mutex<Tokens>,
}

#[derive(Default)]
struct Tokens {
    by_file: HashMap<FileId, Token>,
    by_cage: HashMap<u32, OfCage>,
    /// The number of cages at which tokens of ended ones are dropped; their files go first, so that
    /// the senders of earlier messages stay known for longer.
    cages_full: usize,
    files_full: usize,
}

/// The tokens of a cage: for its present ids, and for its claims.
#[derive(Default)]
struct OfCage {
    sender: Option<(Ids, Arc<OwnedFd>)>,
    claimed: Option<Arc<OwnedFd>>,
    made: u32,
}

impl Default for Senders {
    fn default() -> Self {
        let mut scope = [0; 8];
        if rustix::rand::getrandom(&mut scope, rustix::rand::GetRandomFlags::empty()) != Ok(scope.len()) {
            scope = (u64::from(std::process::id()) << 32 | 0x7768_6f73).to_le_bytes();
        }
        Senders {
            scope,
            names: AtomicU64::new(0),
            asked: AtomicBool::new(false),
            asked_anywhere: AtomicBool::new(false),
            known: Mutex::default(),
            tokens: Mutex::default(),
        }
    }
}

impl Senders {
    /// An abstract name, without its NUL, that no other socket has and that contains these
    /// credentials.
    pub fn name(&self, who: &Who) -> Vec<u8> {
        let number = self.names.fetch_add(1, Ordering::Relaxed);
        let words = who.words().flat_map(u32::to_le_bytes);
        self.scope.into_iter().chain(number.to_le_bytes()).chain(words).collect()
    }

    /// The credentials in an abstract name; None for a name that we did not make.
    pub fn named(&self, name: &[u8]) -> Option<Who> {
        Who::of_words(name.strip_prefix(&self.scope)?.get(8..)?)
    }

    /// Makes a name of the host's known as long as `who` is there.
    pub fn know(&self, name: &[u8], who: &Arc<Who>) {
        let mut known = self.known.locked();
        known.retain(|_, all| {
            all.retain(|who| who.strong_count() > 0);
            !all.is_empty()
        });
        known.entry(name.to_vec()).or_default().push(Arc::downgrade(who));
    }

    /// The credentials of the socket with that name. None if several sockets have the name, in
    /// different directories, and differ in their credentials.
    pub fn known(&self, name: &[u8]) -> Option<Arc<Who>> {
        let mut all = self.known.locked().get(name)?.iter().filter_map(Weak::upgrade).collect::<Vec<_>>();
        let one = all.pop()?;
        all.iter().all(|other| *other == one).then_some(one)
    }

    /// Notes that a cage asks for the senders of messages: `anywhere` if it is not known which
    /// sockets are meant. True the first time.
    pub fn ask(&self, anywhere: bool) -> bool {
        self.asked_anywhere.fetch_or(anywhere, Ordering::SeqCst);
        !self.asked.swap(true, Ordering::SeqCst)
    }

    /// Whether any socket has asked.
    #[inline]
    pub fn asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }

    /// Whether a socket has asked that is not known.
    pub fn asked_anywhere(&self) -> bool {
        self.asked_anywhere.load(Ordering::SeqCst)
    }

    /// A token for messages of `ids`; with `claims`, for messages with a user and group of its
    /// choice. `lives` tells whether a cage exists.
    ///
    /// # Errors
    /// ENOBUFS if the cage has had too many; EMFILE, ENOMEM.
    pub fn token(&self, ids: Ids, claims: bool, lives: impl Fn(u32) -> bool) -> Result<Arc<OwnedFd>> {
        /// How often a cage can become another.
        const MOST: u32 = 1024;
        let mut tokens = self.tokens.locked();
        tokens.forget_gone(ids.pid, lives);
        let of_cage = tokens.by_cage.entry(ids.pid).or_default();
        let there = match &of_cage.sender {
            _ if claims => of_cage.claimed.as_ref(),
            Some((known, file)) if *known == ids => Some(file),
            _ => None,
        };
        if let Some(there) = there {
            return Ok(Arc::clone(there));
        }
        if of_cage.made == MOST {
            return Err(Errno::ENOBUFS);
        }
        let file = rustix::fs::memfd_create("sender", rustix::fs::MemfdFlags::CLOEXEC).map_err(errno)?;
        let (id, file) = (FileId::of(file.as_fd())?, Arc::new(file));
        of_cage.made += 1;
        if claims {
            of_cage.claimed = Some(Arc::clone(&file));
        } else {
            of_cage.sender = Some((ids, Arc::clone(&file)));
        }
        tokens.by_file.insert(id, if claims { Token::Claimed(ids.pid) } else { Token::Sender(ids) });
        Ok(file)
    }

    /// The meaning of a received descriptor, if it is a token.
    pub fn token_behind(&self, file: &OwnedFd) -> Option<Token> {
        let id = FileId::of(file.as_fd()).ok()?;
        self.tokens.locked().by_file.get(&id).copied()
    }
}

impl Tokens {
    /// Before `pid` may get one.
    fn forget_gone(&mut self, pid: u32, lives: impl Fn(u32) -> bool) {
        const FEW_CAGES: usize = 64;
        const FEW_FILES: usize = 16384;
        if !self.by_cage.contains_key(&pid) && self.by_cage.len() >= self.cages_full.max(FEW_CAGES) {
            self.by_cage.retain(|&pid, _| lives(pid));
            self.cages_full = 2 * self.by_cage.len();
        }
        if self.by_file.len() >= self.files_full.max(FEW_FILES) {
            self.by_file.retain(|_, token| lives(token.pid()));
            self.files_full = 2 * self.by_file.len();
        }
    }
}

impl Token {
    /// The number of the cage.
    pub fn pid(self) -> u32 {
        match self {
            Token::Sender(ids) => ids.pid,
            Token::Claimed(pid) => pid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(pid: u32, groups: &[u32]) -> Arc<Who> {
        Arc::new(Who { ids: Ids { pid, uid: 1, gid: 2 }, groups: groups.into() })
    }

    #[test]
    fn names_say_who() {
        let (senders, others) = (Senders::default(), Senders::default());
        let one = who(7, &[3, 4]);
        let name = senders.name(&one);
        assert_eq!(senders.named(&name).as_ref(), Some(&*one));
        assert_eq!(others.named(&name), None);
        assert_ne!(senders.name(&one), name);
        assert_eq!(senders.named(&name[..20]), None);
        let many: Vec<u32> = (0..100).collect();
        let name = senders.name(&who(7, &many));
        assert!(name.len() < 107);
        assert_eq!(&*senders.named(&name).unwrap().groups, &many[..Who::GROUPS]);
    }

    #[test]
    fn a_name_of_two_is_nobodys() {
        let senders = Senders::default();
        let (one, same, other) = (who(7, &[]), who(7, &[]), who(8, &[]));
        senders.know(b"a", &one);
        senders.know(b"a", &same);
        assert_eq!(senders.known(b"a"), Some(Arc::clone(&one)));
        senders.know(b"a", &other);
        assert_eq!(senders.known(b"a"), None);
        drop((one, same));
        assert_eq!(senders.known(b"a"), Some(other));
        assert_eq!(senders.known(b"a"), None);
    }

    #[test]
    fn tokens_are_told_apart() {
        let senders = Senders::default();
        let ids = who(7, &[]).ids;
        let lives = |_| true;
        let token = senders.token(ids, false, lives).unwrap();
        assert!(Arc::ptr_eq(&token, &senders.token(ids, false, lives).unwrap()));
        assert_eq!(senders.token_behind(&token), Some(Token::Sender(ids)));
        let claimed = senders.token(ids, true, lives).unwrap();
        assert_eq!(senders.token_behind(&claimed), Some(Token::Claimed(7)));
        let ids = Ids { uid: 9, ..ids };
        assert_eq!(senders.token_behind(&senders.token(ids, false, lives).unwrap()), Some(Token::Sender(ids)));
        assert_eq!(senders.token_behind(&rustix::fs::memfd_create("", rustix::fs::MemfdFlags::CLOEXEC).unwrap()), None);
        let mut failed = false;
        for uid in 0..2000 {
            failed |= senders.token(Ids { uid, ..ids }, false, lives).is_err_and(|e| e == Errno::ENOBUFS);
        }
        assert!(failed);
    }
}
