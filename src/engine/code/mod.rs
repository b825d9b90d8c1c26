//! Decides which native code may run: from the bytes of a module to machine code that this user
//! compiled.
//!
//! A program for WASI gets an adapter ([`wasi`]), a module is checked ([`validate`], [`manifest`],
//! [`filter_verifier`]), its start-up data is computed ([`data_image`]), it is compiled
//! ([`compile`], [`engines`], [`progress`]), and the result is kept in a signed file ([`cwasm`],
//! [`cache`], [`key`], [`signature`], [`verified`], [`remember`]). [`source`] reads the file of a
//! module, [`loader`] ties these together, and [`inspect`] describes files to people. Beside a
//! process that runs guests, another one compiles and signs: [`link`] is its caller, [`serve`] its
//! work, [`wire`] the messages between them, [`walls`] its confinement. [`ending`] ends a
//! compilation. Code that comes with the program is not compiled: [`delivered`], which [`delivery`]
//! makes. [`own_code`] is the runner's.
//!
//! A security reviewer starts here: only code that this folder lets through is executed.

pub mod cache;
pub(crate) mod compile;
pub(crate) mod cwasm;
pub(crate) mod data_image;
pub(crate) mod delivered;
pub mod delivery;
pub mod ending;
pub(crate) mod engines;
pub(crate) mod filter_verifier;
pub(crate) mod inspect;
pub mod jump_table;
pub(crate) mod key;
pub(crate) mod link;
pub(crate) mod loader;
pub mod manifest;
pub(crate) mod own_code;
pub mod progress;
pub(crate) mod remember;
pub(crate) mod serve;
pub(crate) mod signature;
pub(crate) mod source;
pub mod takes;
pub(crate) mod trap_table;
pub(crate) mod validate;
pub(crate) mod verified;
pub(crate) mod walls;
pub(crate) mod wasi;
pub(crate) mod wire;
