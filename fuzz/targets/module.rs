//! Modules: what the engine checks before it compiles one, and the passes before that. An input is
//! a module, or the choices of wasm-smith for a valid one.
#![no_main]

use arbitrary::Unstructured;
use libfuzzer_sys::Corpus;
use wasmparser::{Validator, WasmFeatures};

use code::data_image::DataImage;
use code::{validate, wasi};

/// The files of the engine that read a module, without the rest of the engine.
#[allow(dead_code, unused_imports, reason = "the engine uses the rest")]
#[path = "../../src/engine/code"]
mod code {
    pub mod data_image;
    pub mod engines;
    pub mod filter_verifier;
    pub mod jump_table;
    pub mod manifest;
    pub mod takes;
    pub mod trap_table;
    pub mod validate;
    pub mod wasi;
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| -> Corpus {
    let Some(module) = module_of(input) else { return Corpus::Reject };
    check(&module);
    if let Ok(linked) = lind_passes::run(&module, &lind_passes::Options::default()) {
        let again = lind_passes::run(&linked, &lind_passes::Options::default()).expect("the passes accept their own");
        assert!(again == linked, "the passes change their own output");
        check(&linked);
    }
    Corpus::Keep
});

fn module_of(input: &[u8]) -> Option<Vec<u8>> {
    let (&kind, choices) = input.split_first()?;
    if kind == 0 {
        return Some(input.to_vec());
    }
    // All but the first kind have what the engine refuses.
    let config = wasm_smith::Config {
        module_shape: Some(wat::parse_str(include_str!("module.wat")).expect("the module of the target is valid")),
        memory64_enabled: false,
        gc_enabled: kind & 2 != 0,
        max_data_segments: usize::from(kind & 4),
        max_instructions: 60,
        ..wasm_smith::Config::default()
    };
    wasm_smith::Module::new(config, &mut Unstructured::new(choices)).ok().map(|module| module.to_bytes())
}

/// A valid module that the engine accepts has to be valid as the compiler gets it.
fn check(module: &[u8]) {
    let Ok(adapted) = wasi::adapted(module) else { return };
    let Ok((compiled, facts, _)) = validate::check(&adapted) else { return };
    let valid = |wasm| Validator::new_with_features(WasmFeatures::default()).validate_all(wasm);
    if valid(&adapted).is_ok() {
        valid(&compiled).expect("the module with its landing pad is valid");
        let _ = DataImage::of(&adapted, facts.heap_base);
    }
}
