//! The commands that look at programs, logs, the cache and the host.

pub mod audit;
pub mod cache;
pub mod compile;
pub mod doctor;
pub mod explain;
pub mod image;
pub mod import;
pub mod inspect;
pub mod syscalls;
