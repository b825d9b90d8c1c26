//! Images: `image build` makes those of container engines, and `unpack-image` unpacks the one that
//! came with a package.

mod build;
mod layer;
mod layout;
mod name;
mod recipe;
mod unpack;

pub use build::build;
pub use unpack::unpack;
