//! The way from compiled code to the kernel and back.
//!
//! [`imports`] defines the functions a guest can call; [`trampoline`] replaces the one for system
//! calls by machine code that skips the engine's own; [`perf`] counts calls for `lind-boot --perf`.

pub(crate) mod imports;
pub mod perf;
pub(crate) mod trampoline;
