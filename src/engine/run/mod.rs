//! Who runs guest code: guests and their host threads ([`guest`]), the life of a guest thread ([`thread`]),
//! host threads that wait for the next one ([`pool`]), what who starts one is told ([`answer`]), a program started on its parent's host thread
//! ([`handoff`]), and two threads out of one ([`fork`]).

pub(crate) mod answer;
pub(crate) mod fork;
pub(crate) mod guest;
pub(crate) mod handoff;
pub(crate) mod pool;
pub(crate) mod program;
pub(crate) mod signal_stack;
pub(crate) mod thread;
