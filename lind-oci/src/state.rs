//! The states of containers: one directory for each below the root of this runtime.
//!
//! A state is written beside the old one and renamed over it, so that it is whole whenever this
//! program is killed. It names everything that has to be removed before that is made: `delete
//! --force` works after a crash between any two steps.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::cgroup::Group;
use crate::cli::Global;
use crate::config::{Hooks, Resources};
use crate::control::Runner;
use crate::process::Process;

/// The version of the specification whose states these are.
pub const SPECIFICATION: &str = "1.2.0";

/// The longest id.
const LONGEST: usize = 1024;

/// The facts about a container that are kept.
#[derive(Deserialize, Serialize, Debug, Clone)]
pub struct Facts {
    /// Its id.
    pub id: String,
    /// Its bundle.
    pub bundle: PathBuf,
    /// Its root file system.
    pub rootfs: PathBuf,
    /// When it was created.
    pub created: String,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
    /// Its runner. None while there is none.
    pub runner: Option<Process>,
    /// Whether `create` has come to its end.
    pub is_created: bool,
    /// Whether `start` has.
    pub is_started: bool,
    /// Whether it is the sandbox of a pod, which has no programs.
    pub is_pod: bool,
    /// Its control group.
    pub group: Option<Group>,
    /// The limits of that. Earlier versions have not kept them.
    #[serde(default)]
    pub resources: Resources,
    /// The hooks that are still to be run.
    pub hooks: Hooks,
    /// The process that `exec` starts commands like: its environment and its user, as JSON.
    pub process: Value,
    /// The mounts of files of the host: guest and host.
    pub mounts: Vec<(PathBuf, PathBuf)>,
}

/// The states of a container.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// Being created.
    Creating,
    /// Its process waits for `start`.
    Created,
    /// Its process runs.
    Running,
    /// Its control group is frozen.
    Paused,
    /// Its process has ended.
    Stopped,
}

impl Status {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Status::Creating => "creating",
            Status::Created => "created",
            Status::Running => "running",
            Status::Paused => "paused",
            Status::Stopped => "stopped",
        }
    }
}

/// The directory of states.
pub struct States(PathBuf);

/// A container.
#[derive(Debug)]
pub struct Container {
    folder: PathBuf,
    /// The facts about it.
    pub facts: Facts,
}

impl States {
    /// The directory of the options.
    pub fn of(global: &Global) -> States {
        States(global.root.clone().unwrap_or_else(|| {
            let own = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
            let base = own.filter(|_| !rustix::process::geteuid().is_root() || is_in_user_namespace());
            base.unwrap_or_else(|| "/run".into()).join("lind-oci")
        }))
    }

    fn folder(&self, id: &str) -> Result<PathBuf> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_+-.".contains(&byte);
        let fine = !id.is_empty() && id.len() <= LONGEST && id.bytes().all(allowed) && id != "." && id != "..";
        ensure!(fine, "invalid id \"{id}\": an id has letters, digits, and the characters _ + - .");
        Ok(self.0.join(id))
    }

    /// Makes the directory of a new container, with its facts in it.
    ///
    /// # Errors
    /// When there is one of this id, or no directory can be made.
    pub fn make(&self, facts: Facts) -> Result<Container> {
        let folder = self.folder(&facts.id)?;
        DirBuilder::new().recursive(true).mode(0o711).create(&self.0).with_context(|| self.0.display().to_string())?;
        match DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                bail!("container with id exists already: {}; delete it, or choose another id", facts.id)
            }
            made => made.with_context(|| folder.display().to_string())?,
        }
        let container = Container { folder, facts };
        container.keep().inspect_err(|_| container.remove_files())?;
        Ok(container)
    }

    /// The container of this id.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn find(&self, id: &str) -> Result<Container> {
        let folder = self.folder(id)?;
        let missing = || anyhow!("container \"{id}\" does not exist: container does not exist");
        match std::fs::read(folder.join(STATE)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Err(missing()),
            Err(error) => Err(error).with_context(|| folder.display().to_string()),
            Ok(text) => {
                let facts = serde_json::from_slice(&text).with_context(|| format!("{}/{STATE}", folder.display()))?;
                Ok(Container { folder, facts })
            }
        }
    }

    /// Removes what is left of a container whose facts were never written, or cannot be read. False
    /// if there is nothing.
    ///
    /// # Errors
    /// The host's error.
    pub fn remove_rest(&self, id: &str) -> Result<bool> {
        let folder = self.folder(id)?;
        match std::fs::remove_dir_all(&folder) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error).with_context(|| folder.display().to_string()),
        }
    }

    /// All containers.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn all(&self) -> Result<Vec<Container>> {
        let entries = match std::fs::read_dir(&self.0) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.with_context(|| self.0.display().to_string())?,
        };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        // A container that is being deleted is not listed.
        let mut all: Vec<_> = names.filter_map(|id| self.find(&id).ok()).collect();
        all.sort_by(|one, other| one.facts.id.cmp(&other.facts.id));
        Ok(all)
    }
}

/// The name of the file with the facts.
const STATE: &str = "state.json";

impl Container {
    /// The socket of its runner.
    pub fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }

    /// The messages of its runner.
    pub fn messages(&self) -> PathBuf {
        self.folder.join("runner.log")
    }

    /// Writes its seccomp profile, and returns the file.
    ///
    /// # Errors
    /// When there is no space for it.
    pub fn keep_profile(&self, profile: &Value) -> Result<PathBuf> {
        let path = self.folder.join("seccomp.json");
        std::fs::write(&path, profile.to_string()).with_context(|| path.display().to_string())?;
        Ok(path)
    }

    /// Locks it against other commands that change it, until the file is closed.
    ///
    /// # Errors
    /// The host's error.
    pub fn lock(&self) -> Result<File> {
        let folder = File::open(&self.folder).map_err(|_| anyhow!("container does not exist"))?;
        folder.lock()?;
        Ok(folder)
    }

    /// Writes the facts.
    ///
    /// # Errors
    /// When there is no space for them.
    pub fn keep(&self) -> Result<()> {
        let (beside, path) = (self.folder.join(".state.json"), self.folder.join(STATE));
        write_over(&beside, &path, &serde_json::to_vec(&self.facts)?)
    }

    /// Reads the facts again, under the lock.
    ///
    /// # Errors
    /// When it does not exist any more.
    pub fn refresh(&mut self) -> Result<()> {
        let text = std::fs::read(self.folder.join(STATE)).map_err(|_| anyhow!("container does not exist"))?;
        self.facts = serde_json::from_slice(&text)?;
        Ok(())
    }

    /// Removes its directory.
    pub fn remove_files(&self) {
        // The facts go last, or a crash meanwhile would leave files that nobody knows.
        for entry in std::fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            if entry.file_name() != STATE {
                let _ = std::fs::remove_file(entry.path());
            }
        }
        let _ = std::fs::remove_file(self.folder.join(STATE));
        let _ = std::fs::remove_dir(&self.folder);
    }

    /// The runner, if it runs.
    pub fn runner(&self) -> Option<Process> {
        self.facts.runner.filter(Process::runs)
    }

    /// Its state.
    pub fn status(&self) -> Status {
        if self.runner().is_none() {
            let being_created = self.facts.runner.is_none() && !self.facts.is_created;
            return if being_created { Status::Creating } else { Status::Stopped };
        }
        if self.facts.group.as_ref().is_some_and(Group::is_frozen) {
            return Status::Paused;
        }
        match (self.facts.is_created, self.facts.is_started) {
            (false, _) => Status::Creating,
            (true, true) => Status::Running,
            (true, false) if self.facts.is_pod => Status::Created,
            // A `start` that was killed may not have noted it.
            (true, false) => {
                let begun = Runner::of(&self.socket()).and_then(|runner| runner.has_begun());
                if begun.unwrap_or(false) { Status::Running } else { Status::Created }
            }
        }
    }

    /// Its state, as engines and hooks read it.
    pub fn described(&self, status: Status) -> Value {
        let pid = self.facts.runner.filter(|_| status != Status::Stopped).map_or(0, |runner| runner.pid);
        json!({
            "ociVersion": SPECIFICATION, "id": self.facts.id, "status": status.word(), "pid": pid,
            "bundle": self.facts.bundle, "rootfs": self.facts.rootfs, "created": self.facts.created,
            "annotations": self.facts.annotations, "owner": "",
        })
    }
}

/// Whether this process is root in a user namespace alone, as a user's engine makes it.
fn is_in_user_namespace() -> bool {
    std::fs::read_to_string("/proc/self/uid_map").is_ok_and(|map| !is_of_host(&map))
}

/// Whether a map of ids is the one of the host: each id is itself.
fn is_of_host(map: &str) -> bool {
    map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// Writes a file whole: beside its place first.
///
/// # Errors
/// The host's error.
pub fn write_over(beside: &Path, path: &Path, bytes: &[u8]) -> Result<()> {
    let write = || -> std::io::Result<()> {
        let mut file = File::create(beside)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        std::fs::rename(beside, path)
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

/// Writes the number of a process to the file that the engine has named.
///
/// # Errors
/// The host's error.
pub fn write_pid(path: &Path, pid: i32) -> Result<()> {
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().with_context(|| path.display().to_string())?);
    write_over(&path.with_file_name(name), path, pid.to_string().as_bytes())
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// The facts about a container that has no runner yet.
    pub fn facts(id: &str) -> Facts {
        Facts {
            id: id.to_owned(),
            bundle: "/b".into(),
            rootfs: "/b/rootfs".into(),
            created: String::new(),
            annotations: BTreeMap::new(),
            runner: None,
            is_created: false,
            is_started: false,
            is_pod: false,
            group: None,
            resources: Resources::default(),
            hooks: Hooks::default(),
            process: Value::Null,
            mounts: Vec::new(),
        }
    }

    #[test]
    fn facts_of_earlier_versions_are_read() {
        let mut facts = serde_json::to_value(facts("a")).unwrap();
        facts.as_object_mut().unwrap().remove("resources").unwrap();
        assert!(serde_json::from_value::<Facts>(facts).is_ok());
    }

    #[test]
    fn a_container_is_there_until_it_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let states = States(folder.path().join("states"));
        assert!(states.all().unwrap().is_empty());
        let mut container = states.make(facts("a")).unwrap();
        assert_eq!(container.status(), Status::Creating);
        container.facts.is_created = true;
        container.facts.runner = Process::of(std::process::id().cast_signed());
        container.facts.is_started = true;
        container.keep().unwrap();
        let found = states.find("a").unwrap();
        assert_eq!(found.status(), Status::Running);
        assert_eq!(found.described(Status::Running)["pid"], std::process::id());
        assert!(states.make(facts("a")).unwrap_err().to_string().contains("exists"));
        found.remove_files();
        let error = states.find("a").unwrap_err().to_string();
        assert!(error.contains("container does not exist"), "{error}");
    }

    #[test]
    fn maps_of_users_are_not_the_hosts() {
        assert!(is_of_host("         0          0 4294967295\n"));
        for map in ["0 1000 1\n1 100000 65536\n", "0 100000 65536\n", "0 0 65536\n", ""] {
            assert!(!is_of_host(map), "{map}");
        }
    }

    #[test]
    fn ids_stay_inside() {
        let states = States("/run/x".into());
        assert_eq!(states.folder("a.b-c_d+1").unwrap(), Path::new("/run/x/a.b-c_d+1"));
        for wrong in ["", ".", "..", "a/b", "../a", "a b", "\u{e4}"] {
            assert!(states.folder(wrong).is_err(), "{wrong}");
        }
    }
}
