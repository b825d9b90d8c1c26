//! Compiles the adapter for WASI, which the library embeds: see wasi/mod.rs.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCES: [&str; 8] = ["start.s", "main.c", "error.c", "fds.c", "paths.c", "walk.c", "poll.c", "sockets.c"];
/// The compiler may not make tables of constants, which would lie in memory: the adapter has no
/// constants of its own.
const FLAGS: [&str; 9] = [
    "--target=wasm32-unknown-unknown",
    "-O2",
    "-ffreestanding",
    "-fno-builtin",
    "-fno-jump-tables",
    "-mbulk-memory",
    "-Wall",
    "-Wextra",
    "-c",
];
const LINK: [&str; 5] = ["--no-entry", "--import-memory", "-z", "stack-size=0", "--global-base=0"];

fn main() {
    println!("cargo:rerun-if-changed=wasi/adapter");
    println!("cargo:rerun-if-env-changed=LLVM_SUFFIX");
    let suffix = env::var("LLVM_SUFFIX").unwrap_or_else(|_| "-22".into());
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let from = Path::new("wasi/adapter");
    let mut objects = Vec::new();
    for source in SOURCES {
        let object = out.join(source).with_extension("o");
        let assembly = source.ends_with(".s");
        let flags = FLAGS.iter().filter(|flag| !assembly || flag.starts_with("--") || **flag == "-c");
        run(Command::new(format!("clang{suffix}")).args(flags).arg(from.join(source)).arg("-o").arg(&object));
        objects.push(object);
    }
    let module = out.join("wasi.wasm");
    run(Command::new(format!("wasm-ld{suffix}")).args(LINK).args(&objects).arg("-o").arg(&module));
    let bytes = std::fs::read(&module).expect("the linker wrote it");
    println!("cargo:rustc-env=WASI_ADAPTER={:016x}", fnv(&bytes));
}

/// FNV-1a: distinguishes versions of the adapter; it need not withstand an attacker.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn run(command: &mut Command) {
    let done = command.status();
    let worked = done.as_ref().is_ok_and(std::process::ExitStatus::success);
    assert!(worked, "{command:?}: {done:?}; scripts/setup.sh installs the compiler");
}
