//! Has a grate linked again when the C SDK has changed, which cargo cannot see.

use std::env;
use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-env-changed=SYSROOT");
    let top = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("../../..");
    let sysroot = env::var_os("SYSROOT").map_or_else(|| top.join("build/sysroot"), PathBuf::from);
    let library = sysroot.join("lib/liblindgrate.a");
    // A path that is not there would have the crate built each time.
    if library.exists() {
        println!("cargo::rerun-if-changed={}", library.display());
    } else {
        println!("cargo::rerun-if-changed=build.rs");
    }
}
