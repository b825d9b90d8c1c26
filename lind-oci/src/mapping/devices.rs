//! Device nodes. Each cage has those of its own /dev; the harmless ones of Linux can have further
//! names, and there are no others.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::mounts::{clean, is_in_dev};
use crate::config::Device;

/// The nodes that each cage has: path and, where it has some, type and numbers.
const OWN: [(&str, Option<(u32, u32)>); 10] = [
    ("/dev/null", Some((1, 3))),
    ("/dev/zero", Some((1, 5))),
    ("/dev/full", Some((1, 7))),
    ("/dev/random", Some((1, 8))),
    ("/dev/urandom", Some((1, 9))),
    ("/dev/tty", Some((5, 0))),
    ("/dev/console", Some((5, 1))),
    ("/dev/ptmx", Some((5, 2))),
    ("/dev/pts/ptmx", Some((5, 2))),
    ("/dev/fd", None),
];

/// How many of them can have other names: they know no difference between those who open them.
const HARMLESS: usize = 5;

/// The permissions and the owner of those on the host, and so of their other names.
const MODE: u32 = 0o666;

/// The mounts that give devices other names.
///
/// # Errors
/// A path that is not absolute.
pub fn map(devices: &[Device], warnings: &mut Vec<String>) -> Result<Vec<Value>> {
    let mut mounts = Vec::new();
    for device in devices {
        let shown = device.path.display();
        let mut none = |instead: String| warnings.push(format!("linux.devices: {shown}: {instead}"));
        ensure!(device.path.is_absolute(), "linux.devices: {shown} is not an absolute path");
        let path = clean(&device.path);
        let numbers = device.numbers();
        if let Some((_, own)) = OWN.iter().find(|(name, _)| path == Path::new(name)) {
            if device.is_another_kind() || (numbers.is_some() && numbers != *own) {
                none("has no effect; a cage has its own there".to_owned());
            }
            continue;
        }
        let harmless = OWN[..HARMLESS].iter().find(|(_, own)| numbers.is_some() && numbers == *own);
        match harmless.filter(|_| !device.is_another_kind() && has_room(&path)) {
            None => none("has no effect; a cage has no such device".to_owned()),
            Some((name, _)) => {
                let is_other = device.file_mode.is_some_and(|mode| mode & 0o777 != MODE);
                if is_other || device.uid.unwrap_or(0) != 0 || device.gid.unwrap_or(0) != 0 {
                    none(format!("fileMode, uid and gid have no effect; it has those of {name}"));
                }
                let name = name.trim_start_matches("/dev/");
                mounts.push(json!({"guest": path, "read_only": false, "what": {"device": name}}));
            }
        }
    }
    Ok(mounts)
}

/// Whether something can be mounted there.
fn has_room(path: &PathBuf) -> bool {
    path != Path::new("/") && (!super::is_own(path) || is_in_dev(path))
}

impl Device {
    /// Major and minor, if config.json says them.
    fn numbers(&self) -> Option<(u32, u32)> {
        let number = |number: Option<i64>| number.map_or(Some(0), |number| u32::try_from(number).ok());
        let numbers = self.major.or(self.minor).map(|_| (number(self.major), number(self.minor)));
        // A number that no device has is said, too.
        numbers.map(|(major, minor)| (major.unwrap_or(u32::MAX), minor.unwrap_or(u32::MAX)))
    }

    /// Whether it is not a character device.
    fn is_another_kind(&self) -> bool {
        !matches!(self.kind.as_str(), "" | "c" | "u")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped(text: &str) -> Result<(Vec<Value>, Vec<String>)> {
        let mut warnings = Vec::new();
        let mounts = map(&serde_json::from_str::<Vec<Device>>(text).unwrap(), &mut warnings)?;
        Ok((mounts, warnings))
    }

    #[test]
    fn a_cages_own_devices_are_there_anyway() {
        for device in [
            r#"{"path": "/dev/null"}"#,
            r#"{"path": "/dev/null", "type": "c", "major": 1, "minor": 3, "fileMode": 438, "uid": 0, "gid": 0}"#,
            r#"{"path": "/dev//tty", "type": "c", "major": 5, "minor": 0}"#,
        ] {
            assert_eq!(mapped(&format!("[{device}]")).unwrap(), (Vec::new(), Vec::new()), "{device}");
        }
    }

    #[test]
    fn harmless_ones_have_other_names() {
        let text = r#"[{"path": "/dev/nothing", "type": "c", "major": 1, "minor": 3, "fileMode": 438},
            {"path": "/srv/../random", "type": "u", "major": 1, "minor": 9}]"#;
        let mount = |guest, device| json!({"guest": guest, "read_only": false, "what": {"device": device}});
        let mounts = vec![mount("/dev/nothing", "null"), mount("/random", "urandom")];
        assert_eq!(mapped(text).unwrap(), (mounts, Vec::new()));
        let text = r#"[{"path": "/a", "type": "c", "major": 1, "minor": 5, "fileMode": 384}]"#;
        let (mounts, warnings) = mapped(text).unwrap();
        assert_eq!((mounts.len(), warnings.len()), (1, 1));
        assert!(warnings[0].ends_with("it has those of /dev/zero"), "{warnings:?}");
    }

    #[test]
    fn there_are_no_others() {
        for device in [
            r#"{"path": "/dev/fuse", "type": "c", "major": 10, "minor": 229}"#,
            r#"{"path": "/dev/sda", "type": "b", "major": 8, "minor": 0}"#,
            r#"{"path": "/dev/x", "type": "b", "major": 1, "minor": 3}"#,
            r#"{"path": "/dev/x", "type": "c", "major": -1, "minor": 3}"#,
            r#"{"path": "/dev/mem", "type": "c", "major": 1, "minor": 1}"#,
            r#"{"path": "/dev/tty1", "type": "c", "major": 5, "minor": 0}"#,
            r#"{"path": "/dev/null", "type": "b", "major": 8, "minor": 0}"#,
            r#"{"path": "/dev/null", "type": "c", "major": 1, "minor": 5}"#,
            r#"{"path": "/proc/x", "type": "c", "major": 1, "minor": 3}"#,
            r#"{"path": "/", "type": "c", "major": 1, "minor": 3}"#,
            r#"{"path": "/dev/pts/9", "type": "c", "major": 1, "minor": 3}"#,
            r#"{"path": "/dev/fifo", "type": "p"}"#,
        ] {
            let (mounts, warnings) = mapped(&format!("[{device}]")).unwrap();
            assert!(mounts.is_empty() && warnings.len() == 1, "{device}: {mounts:?} {warnings:?}");
            assert!(warnings[0].contains("has no effect"), "{device}: {warnings:?}");
        }
        assert!(mapped(r#"[{"path": "dev/x"}]"#).unwrap_err().to_string().contains("absolute"));
    }
}
