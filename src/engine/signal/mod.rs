//! Handles events that end or interrupt guest code from outside it: faults of compiled code
//! ([`context`], [`fault_delivery`], [`trap`]), signals of the host to the runner
//! ([`host_signals`], [`process_signals`]), getting a thread's attention ([`preempt`]), and running
//! a guest's handlers ([`handlers`]). [`backtrace`] names the functions a trapped program was in.

pub(crate) mod backtrace;
pub(crate) mod context;
pub(crate) mod fault_delivery;
pub(crate) mod handlers;
pub mod host_signals;
pub mod outside;
pub(crate) mod preempt;
pub mod process_signals;
pub(crate) mod trap;
