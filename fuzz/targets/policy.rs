//! Files of TOML: policies, settings of grates, and lines of grates. An accepted policy has to be
//! the same after it was written, and a line the same after its words were read.
#![no_main]

use std::ffi::{OsStr, OsString};

use lind_engine::code::manifest::Manifest;

use cli::sandbox::Options;
use plan::policy::Policy;
use plan::step::Step;
use plan::words::{Found, Names};

/// The files of lind-boot that make a plan of a policy, without the rest of lind-boot.
#[allow(dead_code, unused_imports, reason = "lind-boot uses the rest")]
#[path = "../../lind-boot/src"]
mod lind_boot {
    pub mod amount;
    pub mod cli;
    pub mod config;
    pub mod installed;
    pub mod named;
    pub mod plan;
}
use lind_boot::{amount, cli, config, installed, named, plan};

/// Names ending in _grate are grates, each with options of every form.
struct Grates;

impl Names for Grates {
    fn find(&self, word: &OsStr) -> anyhow::Result<Found> {
        let name = word.to_string_lossy();
        Ok(if name.ends_with("_grate") { Found::Grate } else { Found::Program })
    }

    fn manifest(&self, _: &str) -> Option<Manifest> {
        let options: &[u8] = b"option p policy reads\0option o - writes\0option - preload reads=\0option n nr value\0\
            option m memory bytes\0option - cpu time\0option - bytes =bytes\0option - each =limit\0option - rules toml\0\
            option - path value\0option - hash value\0option - allow value\0option - deny value\0option - errno value\0\
            option - protect value\0option - calls value\0option - program value\0option - default value\0\
            option - loopback value\0option - write-bytes =bytes\0takes places\0composes 1\0";
        Some(Manifest::parse(options).expect("the manifest of the target is right"))
    }
}

libfuzzer_sys::fuzz_target!(|text: &str| {
    if let Ok(policy) = Policy::parse("--policy f", text) {
        let written = policy.text().expect("each policy can be written");
        let again = Policy::parse("--policy f", &written).expect("a policy that was written is read");
        assert_eq!(again, policy, "{written}");
        if let Ok(line) = plan::line::grates(&Options::default(), &policy, &[], (Vec::new(), None, None)) {
            check(&line);
        }
    }
    let _ = plan::document::from_toml("f", text);
    if let Ok(line) =
        plan::stack::parse("f", text).and_then(|stack| plan::stack::steps(&stack, &|name| Grates.manifest(name)))
    {
        let _ = plan::words::read(&plan::step::words(&line), &Grates);
    }
    let typed: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
    if let Ok((line, _)) = plan::words::read(&typed, &Grates) {
        check(&line);
    }
});

/// The words of a line have to be read as that line.
fn check(line: &[Step]) {
    let words = plan::step::words(line);
    let (again, count) = plan::words::read(&words, &Grates).expect("a line that was written is read");
    assert_eq!(count, words.len(), "{words:?}");
    assert_eq!(plan::step::words(&again), words);
}
