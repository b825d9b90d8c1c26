//! `lind-boot image build`: an OCI image of programs and files.

use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use lind_engine::{CodeStore, Engine};
use lind_kernel::text::shown;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use serde_json::{Map, Value, json};

use super::layer::Files;
use super::layout::{self, CONFIG, Descriptor, Image, LAYER, Layout, MANIFEST, Manifest, WASM, WASM_CONFIG};
use super::name::Name;
use super::recipe::Recipe;
use crate::cli::image::Build;
use crate::failure::{self, Failure};

/// The annotation by which other runtimes know that an image is for them.
const VARIANT: (&str, &str) = ("module.wasm.image/variant", "compat");
/// The platform that goes with it, and the one of an artifact.
const WASI: (&str, &str) = ("wasi", "wasm");
const ARTIFACT: (&str, &str) = ("wasip1", "wasm");
/// The directories of programs, unless an image says something else.
const PATH: &str = "PATH=/usr/local/bin:/usr/bin:/bin";

/// Makes an image, and prints what it is.
///
/// # Errors
/// A mistake in what was asked for; the host's errors.
pub fn build(options: &Build) -> Result<(), Failure> {
    let name = Name::parse(&options.tag)?;
    let platform = platform(&options.platform)?;
    let time = time()?;
    let output = options.output.clone().unwrap_or_else(|| format!("{}.tar", name.last).into());
    let target = options.layout.as_ref().unwrap_or(&output);
    let work = Work::new(target, options.layout.is_some())?;
    let layout = Layout::new(&work.layout())?;
    let made = match options.artifact {
        true => layout.end(&name, &artifact(&layout, &options.source, time)?, ARTIFACT)?,
        false => {
            let recipe = recipe(options, &name, &work)?;
            layout.end(&name, &image(&layout, &recipe, platform, time)?, platform)?
        }
    };
    work.end(time)?;
    failure::print(&format!("{}: {}, {}\n", shown(target.as_os_str().as_encoded_bytes()), name.given, made.digest))
}

/// The platform in its two parts.
fn platform(text: &str) -> Result<(&str, &str)> {
    let is_word = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let parts = text.split_once('/').filter(|(os, architecture)| is_word(os) && is_word(architecture));
    parts.with_context(|| format!("--platform {text}: expected OS/ARCHITECTURE, such as linux/amd64 or wasi/wasm"))
}

/// The time that all files get, in seconds since 1970.
fn time() -> Result<u64> {
    let Some(given) = std::env::var_os("SOURCE_DATE_EPOCH") else { return Ok(0) };
    let seconds = given.to_str().and_then(|text| text.parse().ok()).filter(|seconds| *seconds < 1 << 33);
    seconds.with_context(|| format!("SOURCE_DATE_EPOCH={}: must be seconds since 1970", given.display()))
}

/// The recipe that was named, or the one of a directory, a module or an artifact.
fn recipe(options: &Build, name: &Name, work: &Work) -> Result<Recipe> {
    let source = &options.source;
    let is_layout = source.is_dir() && source.join("oci-layout").is_file();
    if source.is_dir() && !is_layout {
        return Ok(Recipe::of_directory(source));
    }
    if source.extension().is_some_and(|extension| extension == "toml") {
        return Recipe::read(source);
    }
    if is_module(source)? {
        let file = source.file_name().and_then(|name| name.to_str()).context("the module has no usable name")?;
        return Ok(Recipe::of_module(source, file));
    }
    let module = module_of(&Image::open(source)?, source, work)?;
    Ok(Recipe::of_module(&module, &format!("{}.wasm", name.last)))
}

fn is_module(path: &Path) -> Result<bool> {
    use std::io::Read as _;
    let mut head = Vec::new();
    if !path.is_dir() {
        File::open(path)
            .and_then(|file| file.take(4).read_to_end(&mut head))
            .with_context(|| path.display().to_string())?;
    }
    Ok(head == b"\0asm")
}

/// Takes the module out of an artifact.
fn module_of(image: &Image, source: &Path, work: &Work) -> Result<PathBuf> {
    let manifest = image.manifest(ARTIFACT)?;
    let shown = source.display();
    ensure!(
        manifest.config.media_type == WASM_CONFIG,
        "{shown}: is an image already; name it as `base` in a recipe, or load it"
    );
    let [layer] = &manifest.layers[..] else {
        bail!("{shown}: an artifact with {} layers, and not one", manifest.layers.len())
    };
    ensure!(layer.media_type == WASM, "{shown}: its layer is {}, and not a module ({WASM})", layer.media_type);
    let module = work.folder.join("module");
    image.copy(layer, File::create(&module)?)?;
    ensure!(is_module(&module)?, "{shown}: its layer is not a module of WebAssembly");
    Ok(module)
}

/// Writes an artifact of one module; returns its manifest.
fn artifact(layout: &Layout, module: &Path, time: u64) -> Result<Value> {
    ensure!(is_module(module)?, "--artifact: {}: must be a module of WebAssembly", module.display());
    let about = Engine::new(CodeStore::open()?, false)?.inspect(module)?;
    let imports = about.module.map(|module| module.imports).unwrap_or_default();
    if let Some(import) = imports.iter().find(|import| !import.starts_with("wasi_snapshot_preview1.")) {
        bail!(
            "--artifact: {}: imports {}, which only Lind provides, and an artifact is for every runtime of WASI; make an image",
            module.display(),
            shown(import)
        );
    }
    let mut file = File::open(module)?;
    let (layer, _) = layout.put_by(WASM, |blob| Ok(std::io::copy(&mut file, blob)?))?;
    let config =
        json!({"created": date(time), "architecture": ARTIFACT.1, "os": ARTIFACT.0, "layerDigests": [layer.digest]});
    let config = layout.put(WASM_CONFIG, &config)?;
    Ok(json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer]}))
}

/// Writes the blobs of an image; returns its manifest.
fn image(layout: &Layout, recipe: &Recipe, platform: (&str, &str), time: u64) -> Result<Value> {
    let (mut layers, mut config) = match &recipe.base {
        Some(base) => based(layout, base, platform)?,
        None => (
            Vec::new(),
            json!({"config": {"Env": [PATH]}, "rootfs": {"type": "layers", "diff_ids": []}, "history": []}),
        ),
    };
    if !recipe.copy.is_empty() {
        let files = Files::collect(&recipe.copy)?;
        let (layer, hash) = layout.put_by(LAYER, |blob| files.write(blob, time))?;
        layers.push(layer);
        push(&mut config, "/rootfs/diff_ids", json!(hash))?;
        push(&mut config, "/history", json!({"created": date(time), "created_by": "lind-boot image build"}))?;
    }
    ensure!(!layers.is_empty(), "the recipe has neither `base` nor `copy`, so the image would be empty");
    config["created"] = json!(date(time));
    (config["os"], config["architecture"]) = (json!(platform.0), json!(platform.1));
    set(&mut config["config"], recipe);
    let config = layout.put(CONFIG, &config)?;
    let mut annotations: Map<String, Value> =
        recipe.annotations.iter().map(|(key, text)| (key.clone(), json!(text))).collect();
    if platform == WASI {
        annotations.entry(VARIANT.0).or_insert_with(|| json!(VARIANT.1));
    }
    let mut manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers});
    if !annotations.is_empty() {
        manifest["annotations"] = annotations.into();
    }
    Ok(manifest)
}

/// Copies the layers of the image below, and returns them with its settings.
fn based(layout: &Layout, base: &Path, platform: (&str, &str)) -> Result<(Vec<Descriptor>, Value)> {
    let image = Image::open(base)?;
    let Manifest { config, layers } = image.manifest(platform)?;
    ensure!(config.media_type == CONFIG, "base: {}: is not an image, but {}", base.display(), config.media_type);
    let config: Value = image.described(&config)?;
    ensure!(config.is_object(), "base: {}: its settings are not an object", base.display());
    let ids = config["rootfs"]["diff_ids"].as_array().map_or(0, Vec::len);
    ensure!(ids == layers.len(), "base: {}: has {} layers, and the hashes of {ids}", base.display(), layers.len());
    for layer in &layers {
        let (copied, ()) = layout.put_by(&layer.media_type, |blob| image.copy(layer, blob))?;
        ensure!(copied.digest == layer.digest, "base: {}: was changed meanwhile", base.display());
    }
    Ok((layers, config))
}

fn push(config: &mut Value, place: &str, value: Value) -> Result<()> {
    if config.pointer(place).is_none() && place == "/history" {
        config["history"] = json!([]);
    }
    let list = config.pointer_mut(place).and_then(Value::as_array_mut);
    list.with_context(|| format!("base: its {place} is not a list"))?.push(value);
    Ok(())
}

/// Sets what a recipe says of the program.
fn set(config: &mut Value, recipe: &Recipe) {
    if !config.is_object() {
        *config = json!({});
    }
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            config[key] = value;
        }
    };
    put("Entrypoint", recipe.entrypoint.as_ref().map(|words| json!(words)));
    // The arguments of another program are not its own.
    let cleared = recipe.entrypoint.as_ref().map(|_| Value::Null);
    put("Cmd", recipe.cmd.as_ref().map(|words| json!(words)).or(cleared));
    put("User", recipe.user.as_ref().map(|user| json!(user)));
    put("WorkingDir", recipe.workdir.as_ref().map(|workdir| json!(workdir)));
    put("StopSignal", recipe.stop_signal.as_ref().map(|signal| json!(signal)));
    let mut env: Vec<String> = serde_json::from_value(config["Env"].take()).unwrap_or_default();
    for (name, value) in &recipe.env {
        env.retain(|text| text.split('=').next() != Some(name));
        env.push(format!("{name}={value}"));
    }
    config["Env"] = json!(env);
    if !recipe.labels.is_empty() {
        let mut labels = config["Labels"].as_object().cloned().unwrap_or_default();
        labels.extend(recipe.labels.iter().map(|(key, text)| (key.clone(), json!(text))));
        config["Labels"] = labels.into();
    }
}

/// A time in the form of RFC 3339.
fn date(time: u64) -> String {
    let (days, second) = (time / 86_400, time % 86_400);
    let (mut year, mut day) = (1970, days);
    let is_leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    while day >= 365 + u64::from(is_leap(year)) {
        day -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let months = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while day >= months[month] {
        day -= months[month];
        month += 1;
    }
    let (hours, minutes, seconds) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{:02}-{:02}T{hours:02}:{minutes:02}:{seconds:02}Z", month + 1, day + 1)
}

/// The directory beside the result in which it is made. It is removed at the end, whatever happens.
///
/// A build that was interrupted leaves the directory, and the next one for the same target takes it
/// over. The lock says that nobody uses it.
struct Work {
    _lock: File,
    folder: PathBuf,
    target: PathBuf,
    is_layout: bool,
}

impl Work {
    fn new(target: &Path, is_layout: bool) -> Result<Work> {
        ensure!(!is_layout || !target.exists(), "--layout {}: exists already; remove it first", target.display());
        ensure!(!target.is_dir(), "{}: is a directory; --layout DIR writes one", target.display());
        let name = target.file_name().with_context(|| format!("{}: is not the name of a file", target.display()))?;
        let mut own = OsString::from(".");
        own.push(name);
        own.push(".new");
        let folder = target.with_file_name(own);
        let lock = Work::lock(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(Work { _lock: lock, folder, target: target.to_owned(), is_layout })
    }

    /// Makes the directory, empty, and locks it.
    fn lock(folder: &Path) -> Result<File> {
        loop {
            match std::fs::create_dir(folder) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error.into()),
                _ => {}
            }
            let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = match rustix::fs::open(folder, flags, Mode::empty()) {
                // Its build has just ended.
                Err(Errno::NOENT) => continue,
                opened => File::from(opened?),
            };
            ensure!(file.metadata()?.uid() == rustix::process::geteuid().as_raw(), "it is another user's; remove it");
            file.try_lock().ok().context("another build for the same file runs")?;
            // The one that was locked may be gone, and another in its place.
            let is_there = std::fs::symlink_metadata(folder).is_ok_and(|there| {
                file.metadata().is_ok_and(|own| (own.dev(), own.ino()) == (there.dev(), there.ino()))
            });
            if !is_there {
                continue;
            }
            for entry in std::fs::read_dir(folder)? {
                let path = entry?.path();
                if path.symlink_metadata()?.is_dir() {
                    std::fs::remove_dir_all(path)?;
                } else {
                    std::fs::remove_file(path)?;
                }
            }
            return Ok(file);
        }
    }

    fn layout(&self) -> PathBuf {
        self.folder.join("layout")
    }

    /// Puts the result where it belongs, in one step.
    fn end(&self, time: u64) -> Result<()> {
        let shown = || format!("cannot write {}", self.target.display());
        if self.is_layout {
            return std::fs::rename(self.layout(), &self.target).with_context(shown);
        }
        let packed = self.folder.join("archive");
        layout::pack(&self.layout(), &packed, time)?;
        std::fs::rename(&packed, &self.target).with_context(shown)
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (time, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (1_798_761_599, "2026-12-31T23:59:59Z"),
        ] {
            assert_eq!(date(time), expected);
        }
    }

    #[test]
    fn an_interrupted_build_leaves_nothing_to_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.tar");
        let names =
            || std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
        let first = Work::new(&target, false).unwrap();
        std::fs::create_dir(first.layout()).unwrap();
        std::fs::write(first.folder.join("archive"), "half").unwrap();
        let error = format!("{:#}", Work::new(&target, false).err().unwrap());
        assert!(error.ends_with("another build for the same file runs"), "{error}");
        // As a kill leaves it: without its end, and unlocked.
        let left = first.folder.clone();
        first._lock.unlock().unwrap();
        std::mem::forget(first);
        assert_eq!(names(), [".a.tar.new"]);
        let second = Work::new(&target, false).unwrap();
        assert_eq!(second.folder, left);
        assert!(std::fs::read_dir(&left).unwrap().next().is_none());
        drop(second);
        assert!(names().is_empty());
    }

    #[test]
    fn platforms_have_two_parts() {
        assert_eq!(platform("wasi/wasm").unwrap(), WASI);
        for wrong in ["", "linux", "linux/", "/amd64", "linux/amd64/v2", "Linux/amd64"] {
            assert!(platform(wrong).is_err(), "{wrong}");
        }
    }
}
