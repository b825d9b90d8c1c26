//! Makes the code that comes with a program ([`delivered`](crate::code::delivered)), on the machine
//! that packages it.
//!
//! A file `compiled` in the directory has the hash of the program that has compiled the code, and
//! a line for all code that is there, of other packages too. The same program does not compile it
//! again. Only the packager's own directory is read so.
//!
//! A packager may compress the code then, and have the list made once more, with the hashes of the
//! packed files.

use std::collections::{BTreeSet, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result, bail};
use lind_kernel::lock::Locked;

use crate::code::compile::Compiler;
use crate::code::delivered::{LIST, mark, name_of, packed_name_of};
use crate::code::engines::{Engines, NoMemories};
use crate::code::signature::{self, SIGNATURE, Secret};
use crate::code::source::read_source;

/// The hash of a list of delivered code.
pub type ListHash = blake3::Hash;

/// The file with the hash of the program that has compiled the code, and lines as of a list.
const COMPILED: &str = "compiled";

/// Makes a directory of delivered code.
pub struct Delivery {
    folder: PathBuf,
    compiler: Compiler,
    /// The hash of this program.
    program: blake3::Hash,
    /// The lines of the list that this program has made before.
    before: HashSet<String>,
    /// The lines of the list, in an order that does not depend on that of the modules.
    lines: Mutex<BTreeSet<String>>,
}

impl Delivery {
    /// Begins in `folder`, which is made if it is not there.
    ///
    /// # Errors
    /// The host's error.
    pub fn begin(folder: &Path) -> Result<Delivery> {
        let program = std::env::current_exe().and_then(std::fs::read).context("cannot read lind-boot's own file")?;
        Delivery::begin_by(folder, blake3::hash(&program))
    }

    fn begin_by(folder: &Path, program: blake3::Hash) -> Result<Delivery> {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let engines = Arc::new(Engines::for_any_processor(Arc::new(NoMemories))?);
        let compiler = Compiler { engines, secret: Secret::of(&[0; 32])?, cache: None, delivered: None };
        let compiled = std::fs::read_to_string(folder.join(COMPILED)).unwrap_or_default();
        let mut lines = compiled.lines();
        let is_ours = lines.next() == Some(program.to_hex().as_str());
        let before = lines.filter(|_| is_ours).map(|line| format!("{line}\n")).collect();
        if !is_ours {
            remove_code(folder)?;
        }
        Ok(Delivery { folder: folder.to_owned(), compiler, program, before, lines: Mutex::default() })
    }

    /// Compiles a module, unless its code is there, and adds the code. Returns whether it was
    /// compiled.
    ///
    /// # Errors
    /// The reason why it cannot be compiled, or the host's error.
    pub fn add(&self, module: &Path) -> Result<bool> {
        let add = || -> Result<bool> {
            let wasm = read_source(&File::open(module)?)?;
            let source = blake3::hash(&wasm);
            let line = |code: &[u8]| format!("{source} {}\n", signature::hasher().update(code).finalize());
            let before = std::fs::read(self.folder.join(name_of(&source))).map(|code| line(&code));
            if let Some(before) = before.ok().filter(|before| self.before.contains(before)) {
                self.lines.locked().insert(before);
                return Ok(false);
            }
            let mut code = self.compiler.compile(&wasm)?;
            // The signature is that of a key that nobody keeps.
            code.truncate(code.len().saturating_sub(SIGNATURE));
            self.put(&name_of(&source), &code)?;
            self.lines.locked().insert(line(&code));
            Ok(true)
        };
        add().with_context(|| module.display().to_string())
    }

    /// Writes the list; returns its hash. It has the hashes of the packed files in `packed`.
    ///
    /// # Errors
    /// The host's error.
    pub fn end(self, packed: Option<&Path>) -> Result<ListHash> {
        let lines = self.lines.locked();
        let list: String = lines.iter().map(|line| with_packed(line, packed)).collect();
        let all: BTreeSet<&String> = self.before.iter().chain(lines.iter()).collect();
        let all: String = all.into_iter().map(String::as_str).collect();
        self.put(LIST, list.as_bytes())?;
        self.put(COMPILED, format!("{}\n{all}", self.program.to_hex()).as_bytes())?;
        Ok(blake3::hash(list.as_bytes()))
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.folder.join(name);
        std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))
    }
}

/// A line of the list, with the hash of its packed file if that is there.
fn with_packed(line: &str, packed: Option<&Path>) -> String {
    let source = line.split_once(' ').and_then(|(source, _)| blake3::Hash::from_hex(source).ok());
    let file = packed.zip(source).and_then(|(folder, source)| std::fs::read(folder.join(packed_name_of(&source))).ok());
    match file {
        Some(bytes) => format!("{} {}\n", line.trim_end(), blake3::hash(&bytes)),
        None => line.to_owned(),
    }
}

/// Removes the code of another compiler.
fn remove_code(folder: &Path) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "code") {
            std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(())
}

/// Puts the hash of a list into the bytes of a program.
///
/// # Errors
/// The bytes are not those of lind-boot.
pub fn seal(program: &mut [u8], list: &ListHash) -> Result<()> {
    let places: Vec<usize> = (0..program.len().saturating_sub(64))
        .filter(|at| program[*at] == mark()[0] && program[*at..].starts_with(mark()))
        .collect();
    match places[..] {
        [at] => program[at + 32..at + 64].copy_from_slice(list.as_bytes()),
        [] => bail!("not a lind-boot: the place for the hash of the delivered code is missing"),
        _ => bail!("the place for the hash of the delivered code is there {} times", places.len()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_of_the_same_compiler_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (code, module) = (folder.path().join("code"), folder.path().join("module"));
        let text = r#"(module (memory (export "memory") 65536 65536) (func (export "_start") (param i32)))"#;
        std::fs::write(&module, wat::parse_str(text).unwrap()).unwrap();
        let (one, other) = (blake3::hash(b"one"), blake3::hash(b"other"));
        let make = |program, modules: &[&Path]| {
            let delivery = Delivery::begin_by(&code, program).unwrap();
            let compiled: Vec<bool> = modules.iter().map(|module| delivery.add(module).unwrap()).collect();
            (compiled, delivery.end(None).unwrap())
        };
        let first = make(one, &[&module]);
        assert_eq!(first.0, [true]);
        assert_eq!(make(one, &[&module]), (vec![false], first.1));
        assert_eq!(make(other, &[&module]), (vec![true], first.1), "another compiler compiles again");
        let file = code.join(name_of(&blake3::hash(&std::fs::read(&module).unwrap())));
        std::fs::write(&file, b"changed").unwrap();
        assert_eq!(make(other, &[&module]), (vec![true], first.1), "code that was changed is compiled again");
        make(other, &[]);
        assert_eq!(make(other, &[&module]), (vec![false], first.1), "another package does not remove it");
        let packed = code.join(packed_name_of(&blake3::hash(&std::fs::read(&module).unwrap())));
        std::fs::write(&packed, b"packed").unwrap();
        let delivery = Delivery::begin_by(&code, other).unwrap();
        delivery.add(&module).unwrap();
        assert_ne!(delivery.end(Some(&code)).unwrap(), first.1);
        let list = std::fs::read_to_string(code.join(LIST)).unwrap();
        assert!(list.ends_with(&format!(" {}\n", blake3::hash(b"packed"))), "{list}");
        std::fs::write(code.join("0.code"), b"").unwrap();
        make(one, &[]);
        assert!(!file.exists() && !code.join("0.code").exists(), "code of another compiler");
    }

    #[test]
    fn the_hash_goes_to_its_one_place() {
        let list = blake3::hash(b"list");
        let mut program = [&b"before"[..], mark(), &[0; 32], b"behind"].concat();
        seal(&mut program, &list).unwrap();
        assert_eq!(program, [&b"before"[..], mark(), list.as_bytes(), b"behind"].concat());
        assert!(seal(&mut [0; 100], &list).is_err());
        assert!(seal(&mut [&mark()[..], &[0; 32], &mark()[..], &[0; 33]].concat(), &list).is_err());
    }
}
