//! Runs handlers of grates: a handler runs on the thread that made the call, in a worker of the
//! grate ([`worker`]); a filter ([`filter`]) decides some calls before that, by computing alone.

pub(crate) mod filter;
pub(crate) mod worker;
