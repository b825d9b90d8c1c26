//! Makes the code that comes with a program ([`delivered`](crate::code::delivered)), on the machine
//! that packages it.

use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anyhow::{Context, Result, bail};
use lind_kernel::lock::Locked;

use crate::code::compile::Compiler;
use crate::code::delivered::{LIST, mark, name_of};
use crate::code::engines::{Engines, NoMemories};
use crate::code::signature::{self, SIGNATURE, Secret};
use crate::code::source::read_source;

/// The hash of a list of delivered code.
pub type ListHash = blake3::Hash;

/// Makes a directory of delivered code.
pub struct Delivery {
    folder: PathBuf,
    compiler: Compiler,
    /// The lines of the list, in an order that does not depend on that of the modules.
    lines: Mutex<BTreeSet<String>>,
}

impl Delivery {
    /// Begins in `folder`, which is made if it is not there.
    ///
    /// # Errors
    /// The host's error.
    pub fn begin(folder: &Path) -> Result<Delivery> {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let engines = Arc::new(Engines::for_any_processor(Arc::new(NoMemories))?);
        let compiler = Compiler { engines, secret: Secret::of(&[0; 32])?, cache: None, delivered: None };
        Ok(Delivery { folder: folder.to_owned(), compiler, lines: Mutex::default() })
    }

    /// Compiles a module and adds its code.
    ///
    /// # Errors
    /// The reason why it cannot be compiled, or the host's error.
    pub fn add(&self, module: &Path) -> Result<()> {
        let add = || -> Result<()> {
            let wasm = read_source(&File::open(module)?)?;
            let mut code = self.compiler.compile(&wasm)?;
            // The signature is that of a key that nobody keeps.
            code.truncate(code.len().saturating_sub(SIGNATURE));
            let (source, hash) = (blake3::hash(&wasm), signature::hasher().update(&code).finalize());
            self.put(&name_of(&source), &code)?;
            self.lines.locked().insert(format!("{source} {hash}\n"));
            Ok(())
        };
        add().with_context(|| module.display().to_string())
    }

    /// Writes the list; returns its hash.
    ///
    /// # Errors
    /// The host's error.
    pub fn end(self) -> Result<ListHash> {
        let list: String = self.lines.locked().iter().map(String::as_str).collect();
        self.put(LIST, list.as_bytes())?;
        Ok(blake3::hash(list.as_bytes()))
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.folder.join(name);
        std::fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))
    }
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
    fn the_hash_goes_to_its_one_place() {
        let list = blake3::hash(b"list");
        let mut program = [&b"before"[..], mark(), &[0; 32], b"behind"].concat();
        seal(&mut program, &list).unwrap();
        assert_eq!(program, [&b"before"[..], mark(), list.as_bytes(), b"behind"].concat());
        assert!(seal(&mut [0; 100], &list).is_err());
        assert!(seal(&mut [&mark()[..], &[0; 32], &mark()[..], &[0; 33]].concat(), &list).is_err());
    }
}
