//! Facts about the host and the installation that decide how well a sandbox holds, or how fast it
//! starts.

use std::path::{Path, PathBuf};

use lind_engine::{CodeStore, Engine};
use rustix::process::{Resource, getrlimit};

use super::files;
use super::parts::Report;
use crate::installed;

/// A fact about the host.
#[derive(Debug)]
pub struct Fact {
    /// The name of the fact.
    pub name: &'static str,
    /// The fact itself.
    pub value: String,
    /// The advice, if it is not as it should be.
    pub advice: Option<String>,
    /// Whether a promise does not hold because of it.
    pub less: bool,
}

impl Fact {
    /// It is as it should be.
    pub fn fine(name: &'static str, value: impl Into<String>) -> Fact {
        Fact { name, value: value.into(), advice: None, less: false }
    }

    /// A promise does not hold because of it.
    pub fn wrong(name: &'static str, value: impl Into<String>, advice: impl Into<String>) -> Fact {
        Fact { advice: Some(advice.into()), less: true, ..Fact::fine(name, value) }
    }

    /// It could be better.
    pub fn worth(name: &'static str, value: impl Into<String>, advice: impl Into<String>) -> Fact {
        Fact { advice: Some(advice.into()), ..Fact::fine(name, value) }
    }
}

/// The version of Landlock that confines signals and abstract sockets, and the first kernel with
/// it.
pub const SCOPES: (i32, &str) = (6, "Linux 6.12");

/// All facts: those that need no trial, and those that two trials have reported.
pub fn facts(mounts: &Report, landlock: &Report) -> Vec<Fact> {
    let kernel = rustix::system::uname().release().to_string_lossy().into_owned();
    let user = rustix::process::geteuid().as_raw();
    let mut facts = vec![
        Fact::fine("kernel", kernel),
        Fact::fine("user", if user == 0 { "root".to_owned() } else { user.to_string() }),
        namespaces(mounts),
        version_of_landlock(landlock),
        proc(),
    ];
    facts.extend(limits());
    facts.extend(store());
    facts
}

/// Whether a sandbox gets mounts of its own.
pub fn namespaces(report: &Report) -> Fact {
    const NAME: &str = "mounts of its own";
    match (report.facts.get("mounts"), &report.failed) {
        (Some(0), _) => Fact::fine(NAME, "yes, with this user's rights"),
        (Some(_), _) => Fact::fine(NAME, "yes, in a user namespace"),
        (None, why) => {
            let why = why.as_deref().unwrap_or("it is not known why");
            Fact::wrong(NAME, format!("no ({why}): lind-boot makes them itself"), allowing_namespaces())
        }
    }
}

/// The advice on how to permit user namespaces, as far as the host shows what forbids them.
pub fn allowing_namespaces() -> String {
    let is = |name: &str, value: &str| {
        std::fs::read_to_string(Path::new("/proc/sys").join(name)).is_ok_and(|text| text.trim() == value)
    };
    let settings = [
        ("kernel/unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"),
        ("user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=15000"),
        (
            "kernel/apparmor_restrict_unprivileged_userns",
            "1",
            "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or an AppArmor profile with `userns,` for lind-boot",
        ),
    ];
    let found: Vec<&str> =
        settings.iter().filter(|(name, value, _)| is(name, value)).map(|(_, _, advice)| *advice).collect();
    if !found.is_empty() {
        return format!("as root: {}", found.join("; "));
    }
    let most = std::fs::read_to_string("/proc/sys/user/max_user_namespaces").unwrap_or_default();
    let most = if most.is_empty() { "not known here" } else { most.trim() };
    let container =
        format!("in a container, its capabilities and its seccomp profile decide; user.max_user_namespaces is {most}");
    if rustix::process::geteuid().is_root() {
        format!("start it where root may mount, or user namespaces are permitted ({container})")
    } else {
        format!("run as root, or where user namespaces are permitted ({container})")
    }
}

/// The version of Landlock, and whether it has all that is promised.
pub fn version_of_landlock(report: &Report) -> Fact {
    const NAME: &str = "Landlock";
    match report.facts.get("landlock") {
        Some(&version) if version >= SCOPES.0 => Fact::fine(NAME, format!("version {version}")),
        Some(version) => Fact::wrong(
            NAME,
            format!("version {version}, which does not confine abstract sockets and signals"),
            format!("use {} or later, which has version {}", SCOPES.1, SCOPES.0),
        ),
        None => Fact::wrong(
            NAME,
            "none",
            "use Linux 5.13 or later with CONFIG_SECURITY_LANDLOCK, and `landlock` in lsm= of its command line",
        ),
    }
}

fn proc() -> Fact {
    if Path::new("/proc/self/status").exists() {
        return Fact::fine("/proc", "mounted");
    }
    Fact::worth("/proc", "not mounted, so that some of this cannot be checked", "mount -t proc proc /proc")
}

fn limits() -> Vec<Fact> {
    const FEW: u64 = 256;
    const LITTLE: u64 = 64 << 30;
    let most = |resource| getrlimit(resource).maximum;
    let shown = |limit: Option<u64>| limit.map_or_else(|| "no limit".to_owned(), |limit| limit.to_string());
    let files = most(Resource::Nofile);
    let files = match files {
        Some(few) if few < FEW => Fact::worth("open files", shown(files), format!("ulimit -n {FEW} or more")),
        _ => Fact::fine("open files", shown(files)),
    };
    let addresses = getrlimit(Resource::As).current;
    let shown_size = addresses.map_or_else(|| "no limit".to_owned(), |bytes| format!("{} MiB", bytes >> 20));
    let addresses = match addresses {
        Some(bytes) if bytes < LITTLE => Fact::worth(
            "addresses",
            shown_size,
            "ulimit -v unlimited: each program reserves 4 GiB of addresses, most of them without memory",
        ),
        _ => Fact::fine("addresses", shown_size),
    };
    let threads = most(Resource::Nproc);
    let threads = match threads {
        Some(few) if few < FEW => Fact::worth("threads", shown(threads), format!("ulimit -u {FEW} or more")),
        _ => Fact::fine("threads", shown(threads)),
    };
    vec![files, addresses, threads]
}

/// The key, the cache and the installed files: whether this version and this user can use them.
fn store() -> Vec<Fact> {
    let mut facts = Vec::new();
    let store = match CodeStore::open() {
        Ok(store) => store,
        Err(error) => {
            facts.push(Fact::wrong("key", "cannot be used", format!("{error:#}")));
            return facts;
        }
    };
    let shown = |path: Option<&PathBuf>| path.map(|path| path.display().to_string()).unwrap_or_default();
    match &store.unkept {
        Some(why) => {
            facts.push(Fact::worth("key", format!("not kept ({why})"), "set XDG_DATA_HOME and XDG_CACHE_HOME"));
        }
        None => {
            facts.push(Fact::fine("key", format!("{}/key, for this user alone", shown(store.private.first()))));
            facts.push(match &store.cache {
                Some(_) => Fact::fine("cache", shown(store.private.get(1))),
                None => Fact::worth(
                    "cache",
                    format!("cannot create {}", shown(store.private.get(1))),
                    "set XDG_CACHE_HOME; until then programs are compiled at each start",
                ),
            });
        }
    }
    match Engine::new(store, false) {
        Ok(engine) => facts.extend(files::facts(&engine)),
        Err(error) => facts.push(Fact::wrong(
            "engine",
            format!("{error:#}"),
            "use a processor and a kernel that the engine supports",
        )),
    }
    facts.push(found("C library", installed::sysroot(), "make sysroot (only for compiling programs)"));
    facts.push(files::owners());
    facts
}

/// The place of something, or the advice on how to get it.
pub fn found(name: &'static str, place: Option<PathBuf>, advice: &str) -> Fact {
    match place {
        Some(place) => Fact::fine(name, place.display().to_string()),
        None => Fact::worth(name, "not found", advice),
    }
}
