//! Manifests of grates. An accepted manifest has to be the same after it was written.
#![no_main]

use code::manifest::Manifest;

/// The two files of the engine that read a manifest, without the engine and Wasmtime.
#[allow(dead_code, unused_imports, reason = "the engine uses the rest")]
#[path = "../../src/engine/code"]
mod code {
    pub mod manifest;
    pub mod takes;
}

libfuzzer_sys::fuzz_target!(|section: &[u8]| {
    if let Ok(manifest) = Manifest::parse(section) {
        let again = Manifest::parse(&manifest.section()).expect("a manifest that was written is read");
        assert_eq!(again, manifest, "the manifest as it was written");
    }
});
