//! `lind-boot unpack-image`: the image that came with a package, as a directory. It is as
//! trustworthy as the package.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result};
use tar::Archive;

use crate::failure::Failure;

/// The binary logarithm of the bytes that the archive refers back to, at most.
const WINDOW: u32 = 27;

/// Unpacks a tar that zstd has compressed. Modes and times are those of the archive; the files
/// belong to the caller.
///
/// # Errors
/// When the archive cannot be read, or a file cannot be made.
pub fn unpack(archive: &Path, directory: &Path) -> Result<(), Failure> {
    let unpacked = || -> Result<()> {
        let mut reader = zstd::Decoder::new(File::open(archive)?)?;
        reader.window_log_max(WINDOW)?;
        let mut files = Archive::new(reader);
        files.set_preserve_permissions(true);
        files.set_preserve_ownerships(false);
        files.set_overwrite(false);
        Ok(files.unpack(directory)?)
    };
    let what = || format!("cannot unpack {} into {}", archive.display(), directory.display());
    Ok(unpacked().with_context(what)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn archive(entries: &[(&str, &[u8], u32)]) -> Vec<u8> {
        let mut made = tar::Builder::new(Vec::new());
        for (name, text, mode) in entries {
            let mut header = tar::Header::new_gnu();
            header.as_gnu_mut().unwrap().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_size(text.len() as u64);
            header.set_mode(*mode);
            header.set_cksum();
            made.append(&header, *text).unwrap();
        }
        zstd::encode_all(&made.into_inner().unwrap()[..], 3).unwrap()
    }

    #[test]
    fn an_image_is_unpacked_and_nothing_leaves_the_directory() {
        let folder = tempfile::tempdir().unwrap();
        let (file, target) = (folder.path().join("image.tar.zst"), folder.path().join("image"));
        std::fs::create_dir(&target).unwrap();
        std::fs::write(&file, archive(&[("bin/a", b"text", 0o755), ("../out", b"text", 0o644)])).unwrap();
        unpack(&file, &target).map_err(|failure| failure.reason).unwrap();
        assert_eq!(std::fs::read(target.join("bin/a")).unwrap(), b"text");
        assert_eq!(std::fs::metadata(target.join("bin/a")).unwrap().permissions().mode() & 0o7777, 0o755);
        assert!(!folder.path().join("out").exists());
        std::fs::write(&file, b"no archive").unwrap();
        let why = unpack(&file, &target).unwrap_err();
        assert!(why.reason.to_string().contains("cannot unpack"), "{:#}", why.reason);
    }
}
