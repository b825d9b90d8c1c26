//! A program that was forked does what it does when its fork just returns.
//!
//! No processes are needed to see that: the host answers `lind.fork` as the engine does, lets the
//! program leave its stack, and has it go on, in the same instance or in a new one over a copy of
//! the memory.

mod cases;
mod harness;
mod modules;
mod programs;
mod random;
