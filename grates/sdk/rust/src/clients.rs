//! The state that a grate keeps for each of its clients.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::sync::{Arc, PoisonError, RwLock};

use crate::raw::{self, Lifecycle, Opaque};
use crate::{CageId, Cx};

/// The state of a client.
///
/// A state begins by `start` for a client that has no parent among the clients, and by `fork` for
/// the child of one, before its first call. Threads of a client are the same client.
pub trait Client: Send + Sync + Sized + 'static {
    /// A client without a parent among the clients.
    fn start(cage: CageId) -> Self;

    /// The child of a client. `spawned` is true if it runs a new program already.
    fn fork(&self, cage: CageId, spawned: bool) -> Self {
        let _ = spawned;
        Self::start(cage)
    }

    /// The client runs a new program now.
    fn exec(&self, cage: CageId) {
        let _ = cage;
    }

    /// The client has ended and calls no more; `status` is what wait(2) tells.
    fn exit(&self, cage: CageId, status: i32) {
        let _ = (cage, status);
    }
}

/// The states of all clients. [`clients!`](crate::clients!) declares one.
pub struct Clients<S: Client> {
    states: RwLock<BTreeMap<u32, Arc<S>>>,
    hooks: Lifecycle,
}

/// The C SDK keeps this for a client. It keeps nothing behind it.
const KNOWN: Opaque = std::ptr::dangling_mut::<u8>().cast();

impl<S: Client> Clients<S> {
    #[doc(hidden)]
    pub const fn new(hooks: Lifecycle) -> Clients<S> {
        Clients { states: RwLock::new(BTreeMap::new()), hooks }
    }

    /// The state of the client that a call acts on. None for cage 0.
    pub fn of(&self, cx: &Cx<'_>) -> Option<Arc<S>> {
        self.get(cx.target())
    }

    /// The state of a client. A client that is met for the first time is started.
    pub fn get(&self, cage: CageId) -> Option<Arc<S>> {
        if let Some(state) = self.known(cage) {
            return Some(state);
        }
        // It waits for births that are under way, so that a child is known before its first call.
        raw::lind_client_slow_(u64::from(cage.0));
        self.known(cage)
    }

    /// Each client's id and state, in the order of their births.
    pub fn all(&self) -> Vec<(CageId, Arc<S>)> {
        let states = self.states.read().unwrap_or_else(PoisonError::into_inner);
        states.iter().map(|(&cage, state)| (CageId(cage), state.clone())).collect()
    }

    pub(crate) fn follow(&'static self) {
        // Its file of the C SDK puts the calls by which clients come and change into the manifest.
        raw::lind_follow_births();
        raw::lind_grate_lifecycle(&self.hooks);
    }

    fn known(&self, cage: CageId) -> Option<Arc<S>> {
        self.states.read().unwrap_or_else(PoisonError::into_inner).get(&cage.0).cloned()
    }

    fn keep(&self, cage: u64, state: S) -> Opaque {
        let cage = crate::cx::id(cage).0;
        self.states.write().unwrap_or_else(PoisonError::into_inner).insert(cage, Arc::new(state));
        KNOWN
    }

    #[doc(hidden)]
    pub fn started(&self, cage: u64) -> Opaque {
        self.keep(cage, S::start(crate::cx::id(cage)))
    }

    #[doc(hidden)]
    pub fn forked(&self, parent: u64, cage: u64, spawned: c_int) -> Opaque {
        let child = crate::cx::id(cage);
        match self.known(crate::cx::id(parent)) {
            Some(parent) => self.keep(cage, parent.fork(child, spawned != 0)),
            None => self.started(cage),
        }
    }

    #[doc(hidden)]
    pub fn execed(&self, cage: u64) {
        let cage = crate::cx::id(cage);
        if let Some(state) = self.known(cage) {
            state.exec(cage);
        }
    }

    #[doc(hidden)]
    pub fn exited(&self, cage: u64, status: c_int) {
        let cage = crate::cx::id(cage);
        let state = self.states.write().unwrap_or_else(PoisonError::into_inner).remove(&cage.0);
        if let Some(state) = state {
            state.exit(cage, status);
        }
    }
}

/// Declares the states of a grate's clients.
///
/// ```no_run
/// use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
///
/// use lind_grate::prelude::*;
///
/// /// How often a program asked for its process id.
/// #[derive(Default)]
/// struct Asked(AtomicU64);
///
/// impl Client for Asked {
///     fn start(_: CageId) -> Asked {
///         Asked::default()
///     }
///
///     fn exit(&self, cage: CageId, _: i32) {
///         log(&format!("process {} asked {} times", cage.0, self.0.load(Relaxed)));
///     }
/// }
///
/// clients!(static CLIENTS: Asked);
///
/// fn on_getpid(cx: &Cx) -> Result<Reply> {
///     if let Some(client) = CLIENTS.of(cx) {
///         client.0.fetch_add(1, Relaxed);
///     }
///     cx.pass()
/// }
///
/// calls!(static CALLS = { observes getpid: on_getpid });
///
/// fn main() {
///     GrateBuilder::new("Counts questions.").clients(&CLIENTS).calls(&CALLS).run()
/// }
/// ```
#[macro_export]
macro_rules! clients {
    ($(#[$attr:meta])* $vis:vis static $all:ident: $state:ty) => {
        $(#[$attr])*
        $vis static $all: $crate::Clients<$state> = $crate::Clients::new({
            use $crate::private::Opaque;

            extern "C" fn start(cage: u64) -> Opaque {
                $all.started(cage)
            }
            extern "C" fn fork(_: Opaque, parent: u64, cage: u64, spawned: ::std::ffi::c_int) -> Opaque {
                $all.forked(parent, cage, spawned)
            }
            extern "C" fn exec(_: Opaque, cage: u64) {
                $all.execed(cage);
            }
            extern "C" fn exit(_: Opaque, cage: u64, status: ::std::ffi::c_int) {
                $all.exited(cage, status);
            }
            $crate::private::Lifecycle {
                start: Some(start),
                fork: Some(fork),
                exec: Some(exec),
                exit: Some(exit),
                end: None,
            }
        });
    };
}
