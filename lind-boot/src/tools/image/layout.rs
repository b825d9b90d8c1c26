//! A layout of an image: a directory of blobs with names by their hashes, and an index. An archive
//! is a tar of it.

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::name::Name;

/// The media types of parts.
pub const INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
pub const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
pub const WASM_CONFIG: &str = "application/vnd.wasm.config.v0+json";
pub const WASM: &str = "application/wasm";

/// The largest description in JSON that is read, in bytes.
const MOST: u64 = 4 << 20;

/// The description of a blob in a layout.
#[derive(Serialize, Deserialize, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// The kind of its contents.
    pub media_type: String,
    /// Its hash, as `sha256:HEX`.
    pub digest: String,
    /// Its bytes.
    pub size: u64,
    /// The platform of a manifest in an index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Value>,
    /// Further texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<Value>,
}

/// A manifest: the parts of an image.
#[derive(Deserialize, Debug)]
pub struct Manifest {
    /// The settings.
    pub config: Descriptor,
    /// The layers, the lowest first.
    pub layers: Vec<Descriptor>,
}

/// The manifests of an index.
#[derive(Deserialize)]
struct Index {
    manifests: Vec<Descriptor>,
}

/// Counts and hashes what passes.
pub struct Hashed<T> {
    inner: T,
    hash: Sha256,
    size: u64,
}

impl<T> Hashed<T> {
    /// Begins.
    pub fn new(inner: T) -> Hashed<T> {
        Hashed { inner, hash: Sha256::new(), size: 0 }
    }

    /// The hash as `sha256:HEX`, the number of bytes, and what they went to.
    pub fn end(self) -> (String, u64, T) {
        (digest(self.hash), self.size, self.inner)
    }
}

impl<T: Write> Write for Hashed<T> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.hash.update(&bytes[..count]);
        self.size += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

fn digest(hash: Sha256) -> String {
    hash.finalize().iter().fold("sha256:".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

/// A layout that is written.
pub struct Layout(PathBuf);

impl Layout {
    /// Makes an empty one in a directory that is there.
    ///
    /// # Errors
    /// The host's error.
    pub fn new(folder: &Path) -> Result<Layout> {
        std::fs::create_dir_all(folder.join("blobs/sha256")).with_context(|| folder.display().to_string())?;
        Ok(Layout(folder.to_owned()))
    }

    /// Writes a blob by a function.
    ///
    /// # Errors
    /// The errors of the function and of the host.
    pub fn put_by<T>(
        &self,
        media_type: &str,
        write: impl FnOnce(&mut Hashed<File>) -> Result<T>,
    ) -> Result<(Descriptor, T)> {
        let new = self.0.join("blobs/sha256/new");
        let mut blob = Hashed::new(File::create(&new).with_context(|| new.display().to_string())?);
        let made = write(&mut blob)?;
        let (digest, size, _) = blob.end();
        std::fs::rename(&new, self.0.join(place_of(&digest)?))?;
        Ok((Descriptor { media_type: media_type.to_owned(), digest, size, platform: None, annotations: None }, made))
    }

    /// Writes a blob of JSON.
    ///
    /// # Errors
    /// The host's error.
    pub fn put(&self, media_type: &str, value: &Value) -> Result<Descriptor> {
        Ok(self.put_by(media_type, |blob| Ok(blob.write_all(&serde_json::to_vec(value)?)?))?.0)
    }

    /// Writes the index with one manifest, and what older versions of docker read instead.
    ///
    /// # Errors
    /// The host's error.
    pub fn end(&self, name: &Name, manifest: &Value, (os, architecture): (&str, &str)) -> Result<Descriptor> {
        let mut described = self.put(MANIFEST, manifest)?;
        described.platform = Some(json!({"os": os, "architecture": architecture}));
        described.annotations =
            Some(json!({"io.containerd.image.name": name.full, "org.opencontainers.image.ref.name": name.given}));
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [described]});
        self.write("index.json", &index)?;
        self.write("oci-layout", &json!({"imageLayoutVersion": "1.0.0"}))?;
        let parts: Manifest = serde_json::from_value(manifest.clone())?;
        if parts.config.media_type == CONFIG {
            let layers: Vec<String> =
                parts.layers.iter().map(|layer| place_of(&layer.digest)).collect::<Result<_>>()?;
            self.write(
                "manifest.json",
                &json!([{"Config": place_of(&parts.config.digest)?, "RepoTags": [name.given], "Layers": layers}]),
            )?;
        }
        Ok(described)
    }

    fn write(&self, name: &str, value: &Value) -> Result<()> {
        let path = self.0.join(name);
        std::fs::write(&path, serde_json::to_vec(value)?).with_context(|| path.display().to_string())
    }
}

/// The path of a blob in a layout.
fn place_of(digest: &str) -> Result<String> {
    let hash = digest.strip_prefix("sha256:").filter(|hash| hash.len() == 64);
    let hash = hash.filter(|hash| hash.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)));
    Ok(format!("blobs/sha256/{}", hash.with_context(|| format!("{digest:?} is not a hash of the form sha256:HEX"))?))
}

/// A layout that is read: a directory, or an archive with the places of its files.
pub struct Image {
    shown: String,
    from: From,
}

enum From {
    Directory(PathBuf),
    Archive(File, HashMap<String, (u64, u64)>),
}

impl Image {
    /// Opens a layout or an archive of one.
    ///
    /// # Errors
    /// When it is neither.
    pub fn open(path: &Path) -> Result<Image> {
        let shown = path.display().to_string();
        if path.is_dir() {
            ensure!(path.join("index.json").is_file(), "{shown}: not the layout of an image: it has no index.json");
            return Ok(Image { shown, from: From::Directory(path.to_owned()) });
        }
        let file = File::open(path).with_context(|| shown.clone())?;
        let places = places(&file).with_context(|| format!("{shown}: not an archive of an image"))?;
        ensure!(
            places.contains_key("index.json"),
            "{shown}: not an archive of an image: it has no index.json (podman save --format oci-archive makes one)"
        );
        Ok(Image { shown, from: From::Archive(file, places) })
    }

    /// Its manifest: the one of this platform if there are several.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub fn manifest(&self, (os, architecture): (&str, &str)) -> Result<Manifest> {
        let index: Index = self.json("index.json", None)?;
        let is_ours = |one: &&Descriptor| {
            one.platform
                .as_ref()
                .is_some_and(|platform| platform["os"] == os && platform["architecture"] == architecture)
        };
        let of_platform: Vec<&Descriptor> = index.manifests.iter().filter(is_ours).collect();
        let all: Vec<&Descriptor> = index.manifests.iter().collect();
        let (([one], _) | (_, [one])) = (&of_platform[..], &all[..]) else {
            bail!("{}: has {} images, and not one of {os}/{architecture}", self.shown, all.len());
        };
        ensure!(one.media_type == MANIFEST, "{}: {} instead of an image", self.shown, one.media_type);
        self.described(one)
    }

    /// A blob of JSON.
    ///
    /// # Errors
    /// When it is missing, is not what it should be, or was changed.
    pub fn described<T: serde::de::DeserializeOwned>(&self, blob: &Descriptor) -> Result<T> {
        self.json(&place_of(&blob.digest)?, Some(blob))
    }

    /// Copies a blob.
    ///
    /// # Errors
    /// When it is missing or was changed; the host's errors.
    pub fn copy(&self, blob: &Descriptor, to: impl Write) -> Result<()> {
        let place = place_of(&blob.digest)?;
        let mut hashed = Hashed::new(to);
        std::io::copy(&mut self.reader(&place)?.take(blob.size.saturating_add(1)), &mut hashed)?;
        let (digest, size, _) = hashed.end();
        ensure!(digest == blob.digest && size == blob.size, "{}: {place}: is not what its name says", self.shown);
        Ok(())
    }

    fn json<T: serde::de::DeserializeOwned>(&self, place: &str, blob: Option<&Descriptor>) -> Result<T> {
        let mut bytes = Vec::new();
        match blob {
            Some(blob) => {
                ensure!(blob.size <= MOST, "{}: {place}: larger than {} MiB", self.shown, MOST >> 20);
                self.copy(blob, &mut bytes)?;
            }
            None => {
                self.reader(place)?.take(MOST).read_to_end(&mut bytes)?;
            }
        }
        serde_json::from_slice(&bytes).with_context(|| format!("{}: {place}", self.shown))
    }

    fn reader(&self, place: &str) -> Result<Box<dyn Read + '_>> {
        match &self.from {
            From::Directory(folder) => {
                let file = File::open(folder.join(place)).with_context(|| format!("{}: {place}", self.shown))?;
                Ok(Box::new(file))
            }
            From::Archive(file, places) => {
                let &(at, size) = places.get(place).with_context(|| format!("{}: has no {place}", self.shown))?;
                let mut file = file;
                file.seek(SeekFrom::Start(at))?;
                Ok(Box::new(file.take(size)))
            }
        }
    }
}

/// The places and sizes of the files in an archive.
fn places(file: &File) -> Result<HashMap<String, (u64, u64)>> {
    let mut archive = tar::Archive::new(file);
    let mut places = HashMap::new();
    for entry in archive.entries_with_seek()? {
        let entry = entry?;
        if entry.header().entry_type().is_file() {
            let name = entry.path()?.to_string_lossy().trim_start_matches("./").to_owned();
            places.insert(name, (entry.raw_file_position(), entry.size()));
        }
    }
    Ok(places)
}

/// Packs a layout as an archive, whose bytes do not depend on times and users.
///
/// # Errors
/// The host's error.
pub fn pack(folder: &Path, archive: &Path, time: u64) -> Result<()> {
    let write = || -> Result<()> {
        let mut tar = tar::Builder::new(std::io::BufWriter::new(File::create(archive)?));
        let mut all = Vec::new();
        list(folder, &mut all)?;
        all.sort();
        for path in all {
            let name = path.strip_prefix(folder)?;
            let file = File::open(&path)?;
            let mut header = tar::Header::new_gnu();
            header.set_mtime(time);
            header.set_mode(if path.is_dir() { 0o755 } else { 0o644 });
            header.set_entry_type(if path.is_dir() { tar::EntryType::Directory } else { tar::EntryType::Regular });
            header.set_size(if path.is_dir() { 0 } else { file.metadata()?.len() });
            match path.is_dir() {
                true => tar.append_data(&mut header, name, std::io::empty())?,
                false => tar.append_data(&mut header, name, file)?,
            }
        }
        Ok(tar.into_inner()?.flush()?)
    };
    write().with_context(|| format!("cannot write {}", archive.display()))
}

fn list(folder: &Path, all: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            list(&path, all)?;
        }
        all.push(path);
    }
    Ok(())
}
