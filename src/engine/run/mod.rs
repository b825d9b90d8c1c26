//! Runs guest code: guests and their host threads ([`guest`]), the life of a guest thread
//! ([`thread`]), host threads that wait for the next guest thread ([`pool`]), the answer to the
//! caller that starts a thread ([`answer`]), a program started on its parent's host thread
//! ([`handoff`]), and fork, which makes two threads out of one ([`fork`]).

pub(crate) mod answer;
pub(crate) mod fork;
pub(crate) mod guest;
pub(crate) mod handoff;
pub(crate) mod pool;
pub(crate) mod program;
pub(crate) mod signal_stack;
pub(crate) mod thread;
