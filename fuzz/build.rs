//! Compiles the reader of an overlay's state for the target `overlay`, with the counters that
//! libFuzzer needs and traps at undefined behaviour. `make -C grates/overlay native` made SQLite.

fn main() {
    let overlay = "../grates/overlay/state";
    let sources = ["blocks", "data", "layers", "open", "outside", "rows", "slots", "state", "store", "vfs"];
    println!("cargo::rerun-if-changed=overlay.c");
    println!("cargo::rerun-if-changed={overlay}");
    println!("cargo::rerun-if-changed=../tests/grates/overlay-state");
    println!("cargo::rerun-if-changed=../build/sqlite/native.o");
    cc::Build::new()
        .compiler("clang-22")
        .flags(["-g", "-O1", "-std=c11", "-D_GNU_SOURCE", "-fstack-protector-all", "-Wall", "-Wextra", "-Werror"])
        .flags(["-fsanitize=undefined", "-fsanitize-trap=undefined"])
        .flag("-fsanitize-coverage=trace-cmp,inline-8bit-counters,pc-table")
        .includes([overlay, "../build/sqlite", "../tests/grates/overlay-state"])
        .file("overlay.c")
        .file("../tests/grates/overlay-state/recorded.c")
        .files(sources.map(|name| format!("{overlay}/{name}.c")))
        .object("../build/sqlite/native.o")
        .cargo_metadata(false)
        .compile("overlay");
    let out = std::env::var("OUT_DIR").expect("cargo sets it");
    println!("cargo::rustc-link-arg-bin=overlay={out}/liboverlay.a");
    println!("cargo::rustc-link-arg-bin=overlay=-lm");
    // The test of states can follow what is written; nothing is followed here.
    for name in ["pwrite", "ftruncate", "fallocate", "fdatasync", "fsync", "openat", "unlinkat"] {
        println!("cargo::rustc-link-arg-bin=overlay=-Wl,--wrap={name}");
    }
}
