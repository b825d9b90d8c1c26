//! Parses a command line of grates into a tree, without running it.
//!
//! Only a grate knows where its options end. A grate with the SDK is asked; the options of others
//! end at the first word that names a grate or a program.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use lind_abi::syscall_named;
use lind_engine::code::manifest::{Manifest, Role};
use lind_engine::{Engine, Entry};
use lind_kernel::cage::is_grate_name;

use super::grates::Folders;
use super::said::Said;
use super::stack::{self, Grate};
use super::step::{self, Setting, Step};

/// A grate, and its manifest.
pub struct Node {
    /// Its name, as it was typed.
    pub name: String,
    /// Its options.
    pub settings: Vec<Setting>,
    /// For a composer: the chains between `%{` and `%}`.
    pub stacks: Vec<Vec<Node>>,
    /// The manifest. None if it declares nothing, and so may do anything.
    pub manifest: Option<Manifest>,
    /// Its description of itself. None if it is built without the SDK.
    pub said: Option<Said>,
}

impl Node {
    /// The words of its options.
    pub fn options(&self) -> Vec<String> {
        let step = Step { settings: self.settings.clone(), ..Step::default() };
        step::words(&[step]).iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect()
    }
}

/// # Errors
/// When the number of brackets is not the one that the grate takes.
fn check_brackets(name: &str, stacks: usize, manifest: &Manifest) -> Result<()> {
    match manifest.composes() {
        Some(_) if stacks == 0 => bail!("{name}: expected %{{ after its options, then grates, then %}}"),
        Some(count) if count > 0 && stacks > count as usize => bail!("{name}: too many %{{: it takes {count}"),
        Some(count) if stacks < count as usize => bail!("{name}: too few %{{: it takes {count}"),
        None if stacks > 0 && manifest.declared() => bail!("{name}: this grate takes no %{{ after it"),
        _ => Ok(()),
    }
}

/// Whether programs that are not in the root may be found behind this grate.
fn brings_programs(manifest: &Manifest) -> bool {
    let brings = |role| role >= Some(Role::Alters);
    let any = manifest.role_of_any().filter(|_| manifest.composes().is_none());
    !manifest.declared() || syscall_named("execve").is_some_and(|row| brings(manifest.role(row.nr))) || brings(any)
}

/// The grates of a line, outermost first, and its program.
pub struct Line {
    /// The grates.
    pub chain: Vec<Node>,
    /// The program's name.
    pub program: String,
}

/// Looks up the grates and programs of a line.
pub struct Finder<'a> {
    /// The guest's root.
    pub root: &'a Path,
    /// The directories of grates.
    pub grates: &'a Folders,
    /// The directories of grates that options have named.
    pub named: &'a [PathBuf],
    /// The engine, which reads modules.
    pub engine: &'a Engine,
}

/// The kinds of things that a name may be.
enum Found {
    Grate(Manifest),
    Program,
    Nothing,
}

impl Finder<'_> {
    /// Parses a line.
    ///
    /// # Errors
    /// An unknown name, brackets that do not match, options that a grate does not take.
    pub fn line(&self, words: &[String]) -> Result<Line> {
        let (chain, program) = self.chain(words, &mut 0, false)?;
        let Some(program) = program else {
            let last = chain.last().and_then(|grate| Some((&grate.name, grate.options().pop()?)));
            let taken = |(grate, word): (&String, String)| {
                format!(": there is no program {word}, so it was taken for an option of {grate}")
            };
            bail!("no program after the grates{}", last.map_or_else(String::new, taken))
        };
        Ok(Line { chain, program })
    }

    /// The steps for the grates of a file.
    ///
    /// # Errors
    /// A program in the place of a grate, an unknown name, brackets that a grate does not take.
    pub fn steps(&self, stack: &[Grate]) -> Result<Vec<Step>> {
        self.check(stack, &mut false)?;
        let manifest = |name: &str| match self.find(name) {
            Ok(Found::Grate(manifest)) => Some(manifest),
            _ => None,
        };
        stack::steps(stack, &manifest)
    }

    /// Checks the names of a chain. A name that is not found may exist when it is started, once a
    /// grate before it `brings` programs, in its memory for example.
    fn check(&self, chain: &[Grate], brings: &mut bool) -> Result<()> {
        for grate in chain {
            match self.find(&grate.name) {
                Ok(Found::Program) => bail!("{}.name: {} is a program, not a grate", grate.place, grate.name),
                Ok(Found::Nothing) if !*brings => bail!("{}.name: {}", grate.place, self.none(&grate.name)),
                Ok(Found::Grate(manifest)) if !*brings => {
                    check_brackets(&grate.name, grate.stacks.len(), &manifest).with_context(|| grate.place.clone())?;
                    *brings = brings_programs(&manifest);
                }
                _ => *brings = true,
            }
            grate.stacks.iter().try_for_each(|stack| self.check(stack, brings))?;
        }
        Ok(())
    }

    fn none(&self, name: &str) -> String {
        let inside = |name| format!("no grate {name} in {}", self.root.display());
        if is_grate_name(name.as_bytes()) {
            format!("no grate {name} in {}", self.grates.names())
        } else {
            inside(name)
        }
    }

    /// Parses a chain up to the program, or inside brackets up to and with `%}`.
    fn chain(&self, words: &[String], at: &mut usize, inside: bool) -> Result<(Vec<Node>, Option<String>)> {
        let mut chain = Vec::new();
        while let Some(word) = words.get(*at) {
            *at += 1;
            if word == "%}" {
                if !inside {
                    bail!("there is a %}} without a %{{ before it");
                }
                return Ok((chain, None));
            }
            match self.find(word)? {
                Found::Nothing if word.starts_with('-') => {
                    bail!("{word}: neither an option of the grate before it nor a program")
                }
                Found::Nothing if is_grate_name(word.as_bytes()) => bail!("{word}: {}", self.none(word)),
                Found::Nothing => bail!("{word}: no such program in {}", self.root.display()),
                Found::Program if inside => bail!("{word}: is a program; only grates can be between %{{ and %}}"),
                Found::Program => return Ok((chain, Some(word.clone()))),
                Found::Grate(manifest) => chain.push(self.grate(word, manifest, words, at)?),
            }
        }
        if inside { bail!("there is a %{{ without a %}} after it") } else { Ok((chain, None)) }
    }

    /// Parses a grate: its options from `at` on, and the chains in its brackets.
    fn grate(&self, name: &str, manifest: Manifest, words: &[String], at: &mut usize) -> Result<Node> {
        // Only grates with the SDK accept the words that name places.
        let asks = || Said::ask(self.root, self.named, name, &words[*at..]);
        let said = manifest.takes_places().then(asks).transpose()?;
        let end = match &said {
            Some(said) => (*at + said.words).min(words.len()),
            None => self.end_of_options(words, *at)?,
        };
        let settings = stack::settings(&words[*at..end], &manifest).map_err(|wrong| anyhow!("{name}: {wrong}"))?;
        let typed = |setting: &Setting| setting.name != "--" && setting.as_place().is_none();
        let settings = settings.into_iter().filter(typed).collect();
        *at = end;
        let mut stacks = Vec::new();
        while words.get(*at).is_some_and(|word| word == "%{") {
            *at += 1;
            stacks.push(self.chain(words, at, true)?.0);
        }
        check_brackets(name, stacks.len(), &manifest)?;
        let manifest = Some(manifest).filter(Manifest::declared);
        Ok(Node { name: name.to_owned(), settings, stacks, manifest, said })
    }

    fn end_of_options(&self, words: &[String], mut at: usize) -> Result<usize> {
        while let Some(word) = words.get(at).filter(|word| *word != "%{" && *word != "%}") {
            if word == "--" {
                return Ok(at + 1);
            }
            if !word.starts_with('-') && !matches!(self.find(word)?, Found::Nothing) {
                break;
            }
            at += 1;
        }
        Ok(at)
    }

    /// The kind of file that lind-boot would start by this name.
    fn find(&self, name: &str) -> Result<Found> {
        let Some(file) = self.file(name) else { return Ok(Found::Nothing) };
        let mut about = self.engine.inspect(&file)?;
        // Compiled code that cannot be trusted is replaced by the module beside it, as when it is
        // run.
        let source = file.with_extension("wasm");
        if about.module.is_none() && source != file && source.is_file() {
            about = self.engine.inspect(&source)?;
        }
        let Some(module) = about.module else {
            bail!(
                "{}: was compiled by another user or version and cannot be inspected; compile it again",
                file.display()
            )
        };
        Ok(match module.entry {
            Entry::None => Found::Program,
            Entry::Handle | Entry::PassFptr => Found::Grate(module.manifest),
        })
    }

    fn file(&self, name: &str) -> Option<PathBuf> {
        if is_grate_name(name.as_bytes()) {
            return self.grates.find(name);
        }
        let folders: &[&str] = if name.contains('/') { &[""] } else { &["", "bin"] };
        let dashed = name.replace("_grate", "-grate");
        let lined = name.replace("-grate", "_grate");
        [name, &dashed, &lined].into_iter().find_map(|name| {
            folders.iter().flat_map(|folder| ["", ".cwasm", ".wasm"].map(|suffix| (folder, suffix))).find_map(
                |(folder, suffix)| {
                    let path = self.root.join(folder).join(format!("{}{suffix}", name.trim_start_matches('/')));
                    (path.is_file() && is_module(&path)).then_some(path)
                },
            )
        })
    }
}

fn is_module(path: &Path) -> bool {
    use std::io::Read;
    let mut start = [0; 4];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && (&start == b"\0asm" || &start == b"\x7fELF")
}
