//! Records of runs: how they begin, and which programs they need.
//!
//! The grate `replay` writes and reads the calls. lind-boot writes the head, reads it again with
//! the blocks that say what to start, and checks that no byte has changed.

use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{BufReader, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use flate2::Crc;
use lind_engine::code::manifest::Use;
use lind_kernel::course::Seed;
use lind_kernel::text::shown;
use serde::{Deserialize, Serialize};

use super::command::spelled;
use super::ensure_program;
use crate::plan::step::{Step, Value};

const MAGIC: &[u8; 16] = b"lind record 1\n\0\0";
/// The most bytes of a head.
const MOST: u32 = 1 << 20;
/// Bytes in front of the data of a block.
const BLOCK: usize = 40;
const BLOCK_MAGIC: u32 = u32::from_le_bytes(*b"LBLK");

/// Kinds of blocks.
const PROGRAM: u32 = 2;
const START: u32 = 3;

/// The head of a record.
#[derive(Serialize, Deserialize)]
pub struct Head {
    /// The hash of the lind-boot that recorded.
    build: String,
    /// The user.
    uid: u32,
    /// The seed of AT_RANDOM, in hexadecimal digits.
    seed: String,
    /// The image.
    pub image: PathBuf,
    /// The mounts: paths of the host and of the guest.
    volumes: Vec<(PathBuf, PathBuf)>,
}

impl Head {
    /// The head of a new record.
    ///
    /// # Errors
    /// The host's errors.
    pub fn new(image: &Path, volumes: Vec<(PathBuf, PathBuf)>) -> Result<Head> {
        let mut seed = Seed::default();
        rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::empty())?;
        let seed = blake3::Hash::from_bytes(seed).to_hex().to_string();
        let uid = rustix::process::getuid().as_raw();
        Ok(Head { build: build()?, uid, seed, image: image.to_owned(), volumes })
    }

    /// Makes the file of a record with this head.
    ///
    /// # Errors
    /// When it exists or cannot be made.
    pub fn write(&self, path: &Path) -> Result<()> {
        // A record that cannot begin leaves no file.
        let text = serde_json::to_vec(self).context("a path is not UTF-8, which records cannot hold")?;
        let length = u32::try_from(text.len()).ok().filter(|length| *length <= MOST).context("too many mounts")?;
        let mut new = OpenOptions::new();
        let mut file = new.write(true).create_new(true).mode(0o600).open(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => {
                anyhow!("already exists; a record is never overwritten, so name a new file")
            }
            _ => error.into(),
        })?;
        let words = [length, sum(&text)].map(u32::to_le_bytes);
        Ok(file.write_all(&[MAGIC, words.as_flattened(), &text].concat())?)
    }

    /// The seed.
    ///
    /// # Errors
    /// A damaged record.
    pub fn seed(&self) -> Result<Seed> {
        Ok(*blake3::Hash::from_hex(&self.seed).context("its seed is damaged")?.as_bytes())
    }

    /// The file of the host at a path of the guest, if a mount shows one.
    fn file_at(&self, guest: &Path) -> Option<PathBuf> {
        let mut mounts = self.volumes.iter().rev();
        let (host, below) = mounts.find_map(|(host, at)| Some((host, guest.strip_prefix(at).ok()?)))?;
        let path = if below.as_os_str().is_empty() { host.clone() } else { host.join(below) };
        path.is_file().then_some(path)
    }

    fn ensure_same(&self) -> Result<()> {
        let uid = rustix::process::getuid().as_raw();
        ensure!(self.uid == uid, "it was recorded by user {}, and this is user {uid}: programs see that", self.uid);
        ensure!(
            self.build == build()?,
            "it was recorded by another build of lind-boot; replay it with the one that made it"
        );
        Ok(())
    }
}

/// The hash of this program.
fn build() -> Result<String> {
    let program = std::fs::read("/proc/self/exe").context("cannot read lind-boot itself")?;
    Ok(blake3::hash(&program).to_hex().to_string())
}

/// A record, as far as lind-boot knows it.
pub struct Record {
    /// Its head.
    pub head: Head,
    /// The command.
    pub command: Vec<OsString>,
    /// Its environment.
    pub env: Vec<OsString>,
    /// The directory in which it starts.
    pub workdir: PathBuf,
    /// Programs that are not in the image: the file of the host and the guest's path.
    pub programs: Vec<(PathBuf, PathBuf)>,
}

impl Record {
    /// Reads a record, and checks that nothing in it has changed.
    ///
    /// # Errors
    /// No record, a damaged record, with the place, or a record of another build.
    pub fn read(path: &Path) -> Result<Record> {
        let named = || shown(path.as_os_str().as_bytes());
        let (head, Starts { start, programs }) = checked(path).with_context(named)?;
        head.ensure_same().with_context(named)?;
        let start = start.with_context(|| format!("{}: has no start of a program", named()))?;
        let (command, env, folder) = started(&start).with_context(|| format!("{}: its start is damaged", named()))?;
        // The options of a grate name files of the host, which are opened before the record
        // answers.
        if let Some(word) = command.first().filter(|word| ensure_program(word).is_err()) {
            bail!("{}: starts {}, which no recording does: the record is forged", named(), word.display());
        }
        let mut found: Vec<(PathBuf, PathBuf)> = Vec::new();
        let first = command.first().map(|word| folder.join(word));
        for guest in programs.iter().map(|program| path_of(program)).chain(first.iter().flat_map(|path| spelled(path)))
        {
            let guest: PathBuf = guest.components().collect();
            if guest.components().any(|part| part == Component::ParentDir) {
                // It cannot be mounted there. The replay says that it is missing, if it gets there.
                continue;
            }
            if let Some(host) = head.file_at(&guest).filter(|_| found.iter().all(|(_, known)| *known != guest)) {
                found.push((host, guest));
            }
        }
        // A program that was found from its directory on is found from there again.
        let is_found = |path: &PathBuf| spelled(path).any(|path| found.iter().any(|(_, known)| *known == path));
        let relative = command.first().is_some_and(|word| !Path::new(word).is_absolute());
        let workdir = if relative && first.as_ref().is_some_and(is_found) { folder } else { PathBuf::from("/") };
        Ok(Record { head, command, env, workdir, programs: found })
    }
}

/// The data of the blocks that say what to start.
#[derive(Default)]
struct Starts {
    start: Option<Vec<u8>>,
    programs: Vec<Vec<u8>>,
}

/// The parts of a record, all of whose sums are right.
fn checked(path: &Path) -> Result<(Head, Starts)> {
    let mut file = BufReader::new(File::open(path)?);
    let head = head_of(&mut file)?;
    let mut starts = Starts::default();
    let blocks = |kind, data: &[u8]| match kind {
        START => starts.start = Some(data.to_vec()),
        PROGRAM => starts.programs.push(data.to_vec()),
        _ => {}
    };
    each_block(&mut file, blocks)?;
    Ok((head, starts))
}

fn head_of(file: &mut impl Read) -> Result<Head> {
    let mut start = [0; 24];
    let (magic, words) = match file.read_exact(&mut start) {
        Ok(()) => start.split_at(MAGIC.len()),
        Err(_) => bail!("is no record: too short"),
    };
    ensure!(magic == MAGIC, "is no record that lind-boot made");
    let [length, expected] = [0, 4].map(|at| word(words, at));
    ensure!(length <= MOST, "is damaged: its head has an impossible length");
    let mut text = vec![0; length as usize];
    file.read_exact(&mut text).context("is damaged: its head is cut off")?;
    ensure!(sum(&text) == expected, "is damaged: the sum of its head is wrong");
    serde_json::from_slice(&text).context("is damaged: its head")
}

/// Reads all blocks, and calls `each` with their kinds and data. A last block that is not whole is
/// what the recorder was writing when it was killed.
fn each_block(file: &mut impl Read, mut each: impl FnMut(u32, &[u8])) -> Result<()> {
    let (mut number, mut data) = (0_u64, Vec::new());
    loop {
        let mut block = Vec::with_capacity(BLOCK);
        file.by_ref().take(BLOCK as u64).read_to_end(&mut block)?;
        if block.len() < BLOCK {
            return Ok(());
        }
        number += 1;
        let place = || format!("is damaged in block {number}");
        ensure!(word(&block, 0) == BLOCK_MAGIC && word(&block, 32) == sum(&block[..32]), "{}: its head", place());
        let (kind, packed, expected) = (word(&block, 4), word(&block, 16), word(&block, 20));
        data.clear();
        if file.by_ref().take(packed.into()).read_to_end(&mut data)? < packed as usize {
            return Ok(());
        }
        ensure!(sum(&data) == expected, "{}: the sum of its {packed} bytes is wrong", place());
        each(kind, &data);
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word))
}

fn sum(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

/// The path that a block of a program begins with.
fn path_of(program: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(program.split(|&byte| byte == 0).next().unwrap_or_default()))
}

/// The words, the environment and the directory of the first program.
fn started(data: &[u8]) -> Option<(Vec<OsString>, Vec<OsString>, PathBuf)> {
    let mut texts = data.strip_suffix(b"\0")?.split(|&byte| byte == 0).map(OsStr::from_bytes);
    // Within the words an empty argument has a mark, which is not part of it.
    let mut list = || texts.by_ref().take_while(|text| !text.is_empty()).map(unmarked).collect::<Vec<_>>();
    let (command, env) = (list(), list());
    let folder = PathBuf::from(texts.next()?);
    (!command.is_empty() && folder.is_absolute()).then_some((command, env, folder))
}

/// A word without the mark in front of it.
fn unmarked(text: &OsStr) -> OsString {
    OsStr::from_bytes(text.as_bytes().get(1..).unwrap_or_default()).to_owned()
}

/// The grate that records into this file.
pub fn recorder(file: PathBuf) -> Step {
    Step { ends: true, ..Step::new("replay_grate").with("--record", Value::host(file, Use::Updates)) }
}

/// The grate that answers calls from this file.
pub fn answerer(file: PathBuf) -> Step {
    Step::new("replay_grate").with("--replay", Value::host(file, Use::Reads))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(kind: u32, data: &[u8]) -> Vec<u8> {
        let length = u32::try_from(data.len()).unwrap();
        let words = [BLOCK_MAGIC, kind, 7, length, length, sum(data), 0, 0].map(u32::to_le_bytes);
        let words = words.as_flattened();
        [words, &sum(words).to_le_bytes(), &[0; 4], data].concat()
    }

    fn record() -> (tempfile::TempDir, PathBuf, Vec<u8>) {
        record_of(b"=/app/app.cwasm\0=\0=x y\0\0=A=1\0\0/app\0")
    }

    fn record_of(start: &[u8]) -> (tempfile::TempDir, PathBuf, Vec<u8>) {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("app.cwasm");
        std::fs::write(&program, b"").unwrap();
        let path = folder.path().join("r");
        let volumes = vec![(folder.path().to_owned(), PathBuf::from("/app"))];
        Head::new(Path::new("/image"), volumes).unwrap().write(&path).unwrap();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.extend(block(START, start));
        bytes.extend(block(PROGRAM, b"/bin/sh.cwasm\0print\0"));
        bytes.extend(block(1, b"calls"));
        std::fs::write(&path, &bytes).unwrap();
        (folder, path, bytes)
    }

    #[test]
    fn a_record_says_what_to_start() {
        let (folder, path, _) = record();
        let read = Record::read(&path).unwrap();
        assert_eq!(read.command, ["/app/app.cwasm", "", "x y"]);
        assert_eq!(read.env, ["A=1"]);
        assert_eq!(read.programs, [(folder.path().join("app.cwasm"), PathBuf::from("/app/app.cwasm"))]);
        assert!(read.head.write(&path).unwrap_err().to_string().contains("already exists"));
    }

    #[test]
    fn a_program_is_found_as_it_was() {
        for (start, workdir) in [
            (&b"=./app\0\0\0/app\0"[..], "/app"),
            (b"=app\0\0\0/app\0", "/app"),
            (b"=app/app.cwasm\0\0\0/\0", "/"),
            (b"=/app/app\0\0\0/app\0", "/"),
            (b"=sh\0\0\0/app\0", "/"),
        ] {
            let (folder, path, _) = record_of(start);
            let read = Record::read(&path).unwrap();
            assert_eq!(read.workdir, Path::new(workdir), "{start:?}");
            let own = [(folder.path().join("app.cwasm"), PathBuf::from("/app/app.cwasm"))];
            assert_eq!(read.programs, own[..usize::from(!start.starts_with(b"=sh"))], "{start:?}");
        }
    }

    #[test]
    fn a_record_starts_no_grate() {
        for word in ["strace_grate", "strace-grate.cwasm", "%strace_grate", "%{", "-o", ""] {
            let (_folder, path, _) = record_of(format!("={word}\0=-o\0=/victim\0\0=A=1\0\0/\0").as_bytes());
            let error = format!("{:#}", Record::read(&path).err().unwrap());
            assert!(error.contains("the record is forged"), "{word}: {error}");
        }
    }

    #[test]
    fn no_byte_may_have_changed() {
        let (_folder, path, bytes) = record();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x41;
            std::fs::write(&path, &changed).unwrap();
            assert!(checked(&path).is_err() || is_padding(&bytes, at), "byte {at}");
        }
        for length in 0..bytes.len() {
            std::fs::write(&path, &bytes[..length]).unwrap();
            // The recording may have been killed.
            let _ = checked(&path);
        }
    }

    /// Whether a byte is one of the four behind the sum of a block's head.
    fn is_padding(bytes: &[u8], at: usize) -> bool {
        let begins = |from: usize| bytes[from..].starts_with(&BLOCK_MAGIC.to_le_bytes());
        (at.saturating_sub(BLOCK)..at).any(|from| begins(from) && (36..40).contains(&(at - from)))
    }
}
