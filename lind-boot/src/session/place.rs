//! The directory of a user's sessions, with a socket and a log for each, which no other user can
//! enter.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};

use crate::private::{candidates, make};

/// How long the log of a session is kept that has ended.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// How often, and how long each time, the end of a session's last process is waited for.
const PAUSES: u32 = 50;
const PAUSE: Duration = Duration::from_millis(10);

/// The directory.
pub struct Place(PathBuf);

impl Place {
    /// The user's directory, created if necessary.
    ///
    /// # Errors
    /// When no such directory can be created.
    pub fn of_user() -> Result<Place> {
        // No error is built until one is needed: that would cost a client more than all else it
        // does.
        let mut why = None;
        for path in candidates() {
            match make(&path) {
                Ok(()) => return Ok(Place(path)),
                Err(error) => why = Some(error),
            }
        }
        let why = why.unwrap_or_else(|| anyhow!("there is no directory for sessions"));
        Err(why.context("cannot create a directory for sessions: set XDG_RUNTIME_DIR to a directory of yours"))
    }

    /// The socket of a session.
    ///
    /// # Errors
    /// A name that is not allowed.
    pub fn socket(&self, name: &str) -> Result<PathBuf> {
        self.file(name, "sock")
    }

    /// The log of a session and its grates.
    ///
    /// # Errors
    /// A name that is not allowed.
    pub fn log(&self, name: &str) -> Result<PathBuf> {
        self.file(name, "log")
    }

    /// The file that those lock who start a session if it does not run.
    ///
    /// # Errors
    /// A name that is not allowed.
    pub fn turn(&self, name: &str) -> Result<PathBuf> {
        self.file(name, "turn")
    }

    fn file(&self, name: &str, kind: &str) -> Result<PathBuf> {
        let good = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let fine = !name.is_empty() && name.len() <= 48 && !name.starts_with('.') && name.bytes().all(good);
        ensure!(fine, "{name:?} is not a name for a session: use up to 48 letters, digits, dots, - and _");
        Ok(self.0.join(format!("{name}.{kind}")))
    }

    /// Connects to a session. None if it does not exist or has ended.
    ///
    /// # Errors
    /// Other errors of the host.
    pub fn connect(&self, name: &str) -> Result<Option<UnixStream>> {
        match UnixStream::connect(self.socket(name)?) {
            Ok(stream) => Ok(Some(stream)),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => Ok(None),
            Err(error) => Err(error).with_context(|| format!("session {name}")),
        }
    }

    /// Locks the directory against other processes that create or remove sockets.
    ///
    /// # Errors
    /// The host's error.
    pub fn lock(&self) -> Result<File> {
        let directory = File::open(&self.0)?;
        directory.lock()?;
        Ok(directory)
    }

    /// Removes the files of sessions that have ended: sockets, empty logs, and old ones. A session
    /// has its log locked as long as it runs, so that nobody has to connect to it to find out.
    ///
    /// # Errors
    /// The host's error.
    pub fn sweep(&self) -> Result<()> {
        let _lock = self.lock()?;
        for entry in std::fs::read_dir(&self.0)?.flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str().and_then(|name| name.strip_suffix(".log")) else { continue };
            let Ok(log) = File::open(entry.path()) else { continue };
            if log.try_lock().is_ok() && matches!(self.connect(name), Ok(None)) {
                self.remove(name, &log);
            }
        }
        Ok(())
    }

    /// Removes the files of a session that has ended, unless another one of its name is starting:
    /// that has the log locked.
    pub fn forget(&self, name: &str) {
        match self.log(name).and_then(|log| Ok(File::open(log)?)) {
            Ok(log) => {
                // The last process of a session may end a little after its socket.
                let pause = |_: &u32| log.try_lock().is_ok() || (std::thread::sleep(PAUSE), false).1;
                if (0..PAUSES).find(pause).is_some() {
                    self.remove(name, &log);
                }
            }
            Err(_) => drop(self.socket(name).map(std::fs::remove_file)),
        }
    }

    /// Removes the socket of a session that its starter has given up, and that has ended.
    pub fn abandon(&self, name: &str) {
        let _ = self.socket(name).map(std::fs::remove_file);
    }

    /// The log stays for a while if it says something.
    fn remove(&self, name: &str, log: &File) {
        let Ok(found) = log.metadata() else { return };
        let _ = self.socket(name).map(std::fs::remove_file);
        let is_old = || found.modified().ok()?.elapsed().ok().map(|age| age > KEPT);
        if found.len() == 0 || is_old() == Some(true) {
            let _ = self.log(name).map(std::fs::remove_file);
        }
    }

    /// The names of all sessions that have a socket.
    ///
    /// # Errors
    /// The host's error.
    pub fn names(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.0)? {
            let name = entry?.file_name();
            names.extend(name.to_str().and_then(|name| name.strip_suffix(".sock")).map(str::to_owned));
        }
        names.sort();
        Ok(names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn what_ended_sessions_left_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place(folder.path().to_owned());
        let file = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        for name in ["runs", "ended", "said"] {
            file(&format!("{name}.log"), if name == "said" { "a line" } else { "" });
            file(&format!("{name}.sock"), "");
        }
        let running = File::open(place.log("runs").unwrap()).unwrap();
        running.lock().unwrap();
        // A socket that nobody listens on.
        std::fs::remove_file(place.socket("ended").unwrap()).unwrap();
        drop(std::os::unix::net::UnixListener::bind(place.socket("ended").unwrap()).unwrap());
        std::fs::remove_file(place.socket("said").unwrap()).unwrap();
        place.sweep().unwrap();
        let mut left: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["runs.log", "runs.sock", "said.log"]);
        // Nor are those of one that is starting, by whoever has waited for the end of another.
        place.forget("runs");
        assert!(place.log("runs").unwrap().exists() && place.socket("runs").unwrap().exists());
        let said = File::options().append(true).open(place.log("said").unwrap()).unwrap();
        said.set_modified(std::time::SystemTime::now() - KEPT - KEPT).unwrap();
        place.sweep().unwrap();
        assert!(!place.log("said").unwrap().exists());
    }

    #[test]
    fn names_stay_inside() {
        let place = Place("/run/lind".into());
        assert_eq!(place.socket("a-1.b").unwrap(), Path::new("/run/lind/a-1.b.sock"));
        for wrong in ["", ".", "..", "a/b", "../a", "a b", "\u{e4}", &"x".repeat(49)] {
            assert!(place.socket(wrong).is_err(), "{wrong}");
        }
    }
}
