//! Has the linker put side by side what starts execute (scripts/start_order.py).
#![allow(clippy::print_stdout, reason = "that is how cargo is told")]

fn main() {
    let list = format!("{}/start.ld", std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default());
    println!("cargo:rerun-if-changed={list}");
    println!("cargo:rustc-link-arg-bins=-Wl,-T,{list}");
}
