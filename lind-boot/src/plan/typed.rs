//! The grates of a line with their descriptions of themselves, without running the line.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use lind_abi::syscall_named;
use lind_engine::code::manifest::{Manifest, Role};
use lind_engine::{Engine, Entry};
use lind_kernel::cage::is_grate_name;
use lind_kernel::text::shown;

use super::grates::Folders;
use super::said::Said;
use super::stack::{self, Grate};
use super::step::{self, Step, Value};
use super::words::{self, Found, Names};

/// A grate of a line, and its descriptions.
pub struct Node {
    /// The grate with its options.
    pub step: Step,
    /// For a composer: the chains between `%{` and `%}`.
    pub stacks: Vec<Vec<Node>>,
    /// The manifest. None if it declares nothing, and so may do anything.
    pub manifest: Option<Manifest>,
    /// Its description of itself. None if it is built without the SDK.
    pub said: Option<Said>,
}

impl Node {
    /// Its options, as one types them.
    pub fn options(&self) -> String {
        let settings = self.step.settings.iter().filter(|setting| setting.as_place().is_none()).cloned().collect();
        let words = step::words(&[Step { settings, ..Step::default() }]);
        words[1..].join(OsStr::new(" ")).to_string_lossy().into_owned()
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

impl Finder<'_> {
    /// Reads a line, behind the grates of a file.
    ///
    /// # Errors
    /// An unknown name, brackets that do not match, options that a grate does not take.
    pub fn line(&self, mut steps: Vec<Step>, words: &[OsString]) -> Result<Line> {
        let (typed, count) = words::read(words, self)?;
        steps.extend(typed);
        let behind = &words[count..];
        let chain = self.nodes(&steps, behind)?;
        let is_open = steps.last().is_some_and(|step| step.is_open);
        let Some(word) = behind.first() else {
            ensure!(!is_open, "there is a %{{ without a %}} after it");
            bail!("no program after the grates{}", steps.last().map_or_else(String::new, taken))
        };
        let program = word.to_string_lossy().into_owned();
        match self.find(word)? {
            _ if word == "%}" => bail!("there is a %}} without a %{{ before it"),
            Found::Program if is_open => bail!("{program}: is a program; only grates can be between %{{ and %}}"),
            Found::Program => Ok(Line { chain, program }),
            _ if program.starts_with('-') => bail!("{program}: neither an option of the grate before it nor a program"),
            _ if is_grate_name(word.as_bytes()) => bail!("{program}: {}", self.none(&program)),
            _ => bail!("{program}: no such program in {}", self.root.display()),
        }
    }

    /// The grates of a chain; `behind` are the words that follow it.
    fn nodes(&self, steps: &[Step], behind: &[OsString]) -> Result<Vec<Node>> {
        let node = |(at, step): (usize, &Step)| self.node(step, &[&step::words(&steps[at + 1..]), behind].concat());
        steps.iter().enumerate().map(node).collect()
    }

    fn node(&self, step: &Step, behind: &[OsString]) -> Result<Node> {
        let manifest = self.manifest(&step.grate).unwrap_or_default();
        let line = [&step::words(std::slice::from_ref(step))[1..], behind].concat();
        // Only grates with the SDK describe themselves.
        let asks = || Said::ask(self.root, self.named, &step.grate, &line);
        let said = manifest.takes_places().then(asks).transpose()?;
        let stacks = step.inside.iter().map(|chain| self.nodes(chain, &["%}".into()])).collect::<Result<Vec<_>>>()?;
        check_brackets(&step.grate, stacks.len(), &manifest)?;
        Ok(Node { step: step.clone(), stacks, manifest: Some(manifest).filter(Manifest::declared), said })
    }

    /// The steps for the grates of a file.
    ///
    /// # Errors
    /// A program in the place of a grate, an unknown name, brackets that a grate does not take.
    pub fn steps(&self, stack: &[Grate]) -> Result<Vec<Step>> {
        self.check(stack, &mut false)?;
        stack::steps(stack, &|name| self.manifest(name))
    }

    /// Checks the names of a chain. A name that is not found may exist when it is started, once a
    /// grate before it `brings` programs, in its memory for example.
    fn check(&self, chain: &[Grate], brings: &mut bool) -> Result<()> {
        for grate in chain {
            match self.find(grate.name.as_ref()) {
                Ok(Found::Program) => bail!("{}.name: {} is a program, not a grate", grate.place, grate.name),
                Ok(Found::Nothing) if !*brings => bail!("{}.name: {}", grate.place, self.none(&grate.name)),
                Ok(Found::Grate) if !*brings => {
                    let manifest = self.manifest(&grate.name).unwrap_or_default();
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

impl Finder<'_> {
    /// The entry and the manifest of the module that lind-boot would start by this name.
    fn module(&self, name: &str) -> Result<Option<(Entry, Manifest)>> {
        let Some(file) = self.file(name) else { return Ok(None) };
        let mut about = self.engine.inspect(&file)?;
        // Compiled code that cannot be trusted is replaced by the module beside it, as when it is
        // run.
        let source = file.with_extension("wasm");
        if about.module.is_none() && source != file && source.is_file() {
            about = self.engine.inspect(&source)?;
        }
        let module = about.module.with_context(|| {
            let file = file.display();
            format!("{file}: was compiled by another user or version and cannot be inspected; compile it again")
        })?;
        Ok(Some((module.entry, module.manifest)))
    }
}

impl Names for Finder<'_> {
    fn find(&self, word: &OsStr) -> Result<Found> {
        let module = word.to_str().map(|name| self.module(name)).transpose()?.flatten();
        Ok(match module {
            None => Found::Nothing,
            Some((Entry::None, _)) => Found::Program,
            Some((Entry::Handle | Entry::PassFptr, _)) => Found::Grate,
        })
    }

    fn manifest(&self, grate: &str) -> Option<Manifest> {
        self.module(grate).ok()?.map(|(_, manifest)| manifest)
    }
}

/// The word that seems to be meant as the program, behind a grate that took it for an option.
fn taken(grate: &Step) -> String {
    let word = grate.settings.last().and_then(|last| match &last.value {
        Value::Flag => Some(OsString::from(last.name.as_ref())).filter(|_| !last.name.starts_with('-')),
        value => value.word().filter(|_| last.apart),
    });
    word.map_or_else(String::new, |word| {
        format!(": there is no program {}, so it was taken for an option of {}", shown(word.as_bytes()), grate.grate)
    })
}

fn is_module(path: &Path) -> bool {
    use std::io::Read;
    let mut start = [0; 4];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut start));
    read.is_ok() && (&start == b"\0asm" || &start == b"\x7fELF")
}
