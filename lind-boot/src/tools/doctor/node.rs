//! `lind-boot doctor --node`: whether containers of a node can be cages. The engines are looked for
//! below a directory, so that a pod which has the node's root mounted can ask, too.

use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::host::{self, Fact};
use super::parts;
use super::{Part, Target};

/// The names of the OCI runtime's file.
const RUNTIME: &str = "lind-oci";
/// The handler that the files of deploy/ configure.
const HANDLER: &str = "lind";
/// The directories of programs on a node.
const PROGRAMS: [&str; 5] = ["usr/local/bin", "usr/local/sbin", "usr/bin", "usr/sbin", "opt/bin"];
/// The advice for an engine.
const CONFIGURE: &str = "docs/kubernetes.md";

/// An engine: its program, its other traces, and its files of configuration.
struct EngineOf {
    name: &'static str,
    traces: &'static [&'static str],
    file: &'static str,
    /// Patterns of further files, besides those that a file names as its imports.
    more: &'static [&'static str],
    /// The handlers of such a configuration. None if it does not say anything about them.
    handlers: fn(&Table) -> Option<Handlers>,
    /// The reason why the engine ignores handlers of its main file.
    ignores: fn(&Table) -> Option<&'static str>,
}

/// The handlers of a configuration.
#[derive(Default)]
struct Handlers {
    /// The file of the handler that is looked for.
    file: Option<String>,
    /// The default handler, if the configuration names others and not this one.
    lost: Option<String>,
}

/// The contents of the files of an engine.
#[derive(Default)]
struct Configured {
    handlers: Handlers,
    /// The reason why the engine ignores them.
    ignored: Option<&'static str>,
    /// The mistakes in files.
    broken: Vec<String>,
}

const ENGINES: [EngineOf; 3] = [
    EngineOf {
        name: "containerd",
        traces: &["etc/containerd", "run/containerd/containerd.sock"],
        file: "etc/containerd/config.toml",
        more: &[],
        handlers: of_containerd,
        ignores: ignored_by_containerd,
    },
    EngineOf {
        name: "k3s",
        traces: &["var/lib/rancher/k3s/agent/etc/containerd", "run/k3s/containerd/containerd.sock"],
        file: "var/lib/rancher/k3s/agent/etc/containerd/config.toml",
        more: &[],
        handlers: of_containerd,
        ignores: ignored_by_containerd,
    },
    EngineOf {
        name: "crio",
        traces: &["etc/crio", "run/crio/crio.sock"],
        file: "etc/crio/crio.conf",
        more: &["usr/share/crio/crio.conf.d/*.conf", "etc/crio/crio.conf.d/*.conf"],
        handlers: of_crio,
        ignores: |_| None,
    },
];

/// The facts about a node whose root is at `node`. `target` is for the trials of its kernel.
pub fn facts(node: &Path, target: &Target) -> Vec<Fact> {
    let landlock = parts::ask(Part::Landlock, target);
    let mut facts = vec![
        Fact::fine("kernel", rustix::system::uname().release().to_string_lossy()),
        groups(),
        host::version_of_landlock(&landlock),
        seccomp(),
        host::namespaces(&parts::ask(Part::Mounts, target)),
        own_runtime(),
    ];
    facts.extend(engines(node));
    facts
}

fn groups() -> Fact {
    const NAME: &str = "control groups";
    let top = Path::new("/sys/fs/cgroup");
    if top.join("cgroup.controllers").is_file() {
        return Fact::fine(NAME, "version 2");
    }
    if top.join("memory").is_dir() {
        let both = if top.join("unified").is_dir() { "version 1, and version 2 beside it" } else { "version 1" };
        let advice = "Kubernetes no longer maintains version 1: boot with systemd.unified_cgroup_hierarchy=1";
        return Fact::worth(NAME, both, advice);
    }
    Fact::wrong(NAME, "none", "mount -t cgroup2 none /sys/fs/cgroup, and run the doctor on the node itself")
}

fn seccomp() -> Fact {
    let actions = std::fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail").unwrap_or_default();
    if actions.split_whitespace().any(|action| action == "errno") {
        return Fact::fine("seccomp", "filters");
    }
    Fact::wrong("seccomp", "no filters", "use a kernel with CONFIG_SECCOMP_FILTER, and mount /proc")
}

fn own_runtime() -> Fact {
    let beside = crate::installed::program().map(|program| program.with_file_name(RUNTIME));
    let found = beside.filter(|path| path.is_file());
    match found {
        Some(path) => Fact::fine(RUNTIME, path.display().to_string()),
        None => Fact::wrong(RUNTIME, "not beside lind-boot", "make install puts both into one directory"),
    }
}

/// The engines that are there, and what each runs for the handler.
fn engines(node: &Path) -> Vec<Fact> {
    let facts: Vec<Fact> = ENGINES.iter().filter_map(|engine| engine.fact(node)).collect();
    if !facts.is_empty() {
        return facts;
    }
    let place = node.display();
    vec![Fact::wrong(
        "engine",
        format!("neither containerd, k3s nor CRI-O below {place}"),
        "run the doctor on a node, or in a pod with --node=DIR of its root",
    )]
}

impl EngineOf {
    fn fact(&self, node: &Path) -> Option<Fact> {
        let program = PROGRAMS.map(|folder| node.join(folder).join(self.name));
        let is_there =
            program.iter().any(|path| path.is_file()) || self.traces.iter().any(|trace| is_used(&node.join(trace)));
        if !is_there {
            return None;
        }
        let Configured { handlers: Handlers { file: found, lost }, ignored, broken } = self.configured(node);
        let advice = format!("{CONFIGURE} says which file of deploy/ it needs; then restart {}", self.name);
        if let Some(why) = ignored {
            let advice = format!("correct /{} ({CONFIGURE} says how); then restart {}", self.file, self.name);
            return Some(Fact::wrong(self.name, why, advice));
        }
        if let Some(lost) = lost.filter(|_| found.is_some()) {
            let value =
                format!("names the handler {HANDLER}, and not its default one, {lost}: ordinary pods have none");
            return Some(Fact::wrong(self.name, value, format!("name {lost} in /{}, too ({CONFIGURE})", self.file)));
        }
        Some(match found {
            None if broken.is_empty() => Fact::wrong(self.name, format!("has no handler {HANDLER}"), advice),
            None => Fact::wrong(self.name, broken.join("; "), "correct the file"),
            Some(path) if is_program(&node.join(path.trim_start_matches('/'))) => {
                Fact::fine(self.name, format!("handler {HANDLER} is {path}"))
            }
            Some(path) => Fact::wrong(
                self.name,
                format!("handler {HANDLER} is {path}, which is not a program"),
                format!("install lind-boot and {RUNTIME} there, or correct the path"),
            ),
        })
    }

    /// The files of configuration. The last one that names handlers holds.
    fn configured(&self, node: &Path) -> Configured {
        let mut files = vec![node.join(self.file)];
        files.extend(self.more.iter().flat_map(|pattern| matching(&node.join(pattern))));
        let mut found = Configured::default();
        let mut next = 0;
        while let Some(file) = files.get(next).cloned() {
            next += 1;
            let Ok(text) = std::fs::read_to_string(&file) else { continue };
            match text.parse::<Table>() {
                Ok(table) => {
                    if next == 1 {
                        found.ignored = (self.ignores)(&table);
                    }
                    found.handlers = (self.handlers)(&table).unwrap_or(found.handlers);
                    let more = imports(&table, node, &file);
                    files.extend(more.into_iter().filter(|file| !files.contains(file)).collect::<Vec<_>>());
                }
                Err(error) => found.broken.push(format!("{}: {}", file.display(), error.message())),
            }
        }
        found
    }
}

/// The files that containerd reads besides this one.
fn imports(table: &Table, node: &Path, file: &Path) -> Vec<PathBuf> {
    let patterns = table.get("imports").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let folder = file.parent().unwrap_or(node);
    let places = patterns.map(|pattern| match pattern.strip_prefix('/') {
        Some(below) => node.join(below),
        None => folder.join(pattern),
    });
    places.flat_map(|place| matching(&place)).collect()
}

/// The files that match a path whose last part may have one `*`.
fn matching(pattern: &Path) -> Vec<PathBuf> {
    let name = pattern.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some((before, behind)) = name.split_once('*') else { return vec![pattern.to_owned()] };
    let entries = std::fs::read_dir(pattern.parent().unwrap_or(pattern)).into_iter().flatten().flatten();
    let fits = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.len() >= before.len() + behind.len() && name.starts_with(before) && name.ends_with(behind)
    };
    let mut all: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(fits).collect();
    all.sort();
    all
}

/// Whether something is there. Volumes of pods make empty directories.
fn is_used(path: &Path) -> bool {
    match std::fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => path.exists(),
    }
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// The value at a path of keys.
fn at<'a>(table: &'a Table, keys: &[&str]) -> Option<&'a Value> {
    let (first, rest) = keys.split_first()?;
    rest.iter().try_fold(table.get(*first)?, |value, key| value.get(key))
}

fn of_containerd(table: &Table) -> Option<Handlers> {
    const OLDER: &str = "io.containerd.grpc.v1.cri";
    // A file replaces all settings of a plugin.
    let named = |name| Some((name, at(table, &["plugins", name])?.as_table()?));
    let (name, plugin) = named("io.containerd.cri.v1.runtime").or_else(|| named(OLDER))?;
    let Some(all) = at(plugin, &["containerd", "runtimes"]).and_then(Value::as_table) else {
        return Some(Handlers::default());
    };
    let usual = at(plugin, &["containerd", "default_runtime_name"]).and_then(Value::as_str).unwrap_or("runc");
    // Before version 2 the handlers of a file took the place of the built-in one.
    let lost = (name == OLDER && !all.contains_key(usual)).then(|| usual.to_owned());
    let runtime = all.get(HANDLER);
    let binary = runtime.and_then(|runtime| runtime.get("options")?.get("BinaryName"));
    // Without it, it is a shim of its own, by path.
    let of = |key| runtime.and_then(|runtime| runtime.get(key));
    let file = binary.or_else(|| of("runtime_path")).or_else(|| of("runtime_type")).and_then(Value::as_str);
    Some(Handlers { file: file.map(str::to_owned), lost })
}

/// The tables of handlers exist since version 2, and a file without a version is one of the first.
fn ignored_by_containerd(table: &Table) -> Option<&'static str> {
    const PLUGINS: [&str; 4] =
        ["cri", "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime", "io.containerd.cri.v1.images"];
    if table.get("version").and_then(Value::as_integer).unwrap_or(1) < 2 {
        return Some("has a file without `version = 2` or later, so it ignores handlers");
    }
    let disabled = table.get("disabled_plugins").and_then(Value::as_array).into_iter().flatten();
    let mut names = disabled.filter_map(Value::as_str);
    names.any(|name| PLUGINS.contains(&name)).then_some("has cri in disabled_plugins, so it serves no pods")
}

fn of_crio(table: &Table) -> Option<Handlers> {
    let runtime = at(table, &["crio", "runtime", "runtimes", HANDLER])?;
    let file = runtime.get("runtime_path").and_then(Value::as_str).map(str::to_owned);
    Some(Handlers { file, lost: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(node: &Path, file: &str, text: &str) {
        std::fs::create_dir_all(node.join(file).parent().unwrap()).unwrap();
        std::fs::write(node.join(file), text).unwrap();
    }

    fn value(node: &Path) -> Vec<(&'static str, String, bool)> {
        engines(node).into_iter().map(|fact| (fact.name, fact.value, fact.less)).collect()
    }

    #[test]
    fn a_node_without_an_engine_is_said() {
        let node = tempfile::tempdir().unwrap();
        assert!(matches!(&value(node.path())[..], [("engine", _, true)]));
    }

    #[test]
    fn handlers_are_found_in_every_file() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let node = folder.path();
        let main = "version = 2\nimports = [\"/etc/containerd/conf.d/*.toml\"]\n";
        write(node, "etc/containerd/config.toml", main);
        write(
            node,
            "etc/crio/crio.conf.d/10-lind.conf",
            "[crio.runtime.runtimes.lind]\nruntime_path = \"/opt/lind/bin/lind-oci\"\n",
        );
        let all = value(node);
        assert_eq!(all[0], ("containerd", "has no handler lind".to_owned(), true));
        assert!(all[1].1.ends_with("which is not a program") && all[1].2, "{all:?}");
        write(node, "opt/lind/bin/lind-oci", "");
        std::fs::set_permissions(node.join("opt/lind/bin/lind-oci"), PermissionsExt::from_mode(0o755)).unwrap();
        for plugin in ["io.containerd.grpc.v1.cri", "io.containerd.cri.v1.runtime"] {
            let runtimes = format!("plugins.\"{plugin}\".containerd.runtimes");
            let text = format!("[{runtimes}.lind.options]\nBinaryName = \"/opt/lind/bin/lind-oci\"\n");
            write(node, "etc/containerd/conf.d/lind.toml", &text);
            let older = plugin == "io.containerd.grpc.v1.cri";
            assert_eq!((value(node)[0].1.contains("not its default one, runc"), value(node)[0].2), (older, older));
            write(node, "etc/containerd/conf.d/lind.toml", &format!("{text}[{runtimes}.runc]\n"));
            let fine = "handler lind is /opt/lind/bin/lind-oci".to_owned();
            assert_eq!(value(node), [("containerd", fine.clone(), false), ("crio", fine, false)]);
        }
        // Another file that says something of the plugin takes its place.
        write(node, "etc/containerd/conf.d/other.toml", "[plugins.\"io.containerd.cri.v1.runtime\"]\nx = 1\n");
        assert_eq!(value(node)[0].1, "has no handler lind");
        std::fs::remove_file(node.join("etc/containerd/conf.d/other.toml")).unwrap();
        // A file that is not imported has no effect, and one that imports itself is read once.
        write(node, "etc/containerd/config.toml", "version = 2\nimports = [\"config.toml\"]\n");
        assert_eq!(value(node)[0].1, "has no handler lind");
        write(node, "etc/containerd/config.toml", main);
        write(node, "etc/containerd/conf.d/lind.toml", "[");
        assert!(value(node)[0].1.contains("lind.toml") && value(node)[0].2);
    }

    #[test]
    fn a_file_that_an_engine_ignores_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let node = folder.path();
        let table = "[plugins.\"io.containerd.cri.v1.runtime\".containerd.runtimes.lind]\nruntime_type = \"x\"\n";
        for (top, said) in [
            ("", "without `version = 2`"),
            ("version = 1\n", "without `version = 2`"),
            ("version = 2\ndisabled_plugins = [\"cri\"]\n", "disabled_plugins"),
            ("version = 3\ndisabled_plugins = [\"io.containerd.cri.v1.runtime\"]\n", "disabled_plugins"),
            ("version = 3\ndisabled_plugins = [\"io.containerd.nri.v1.nri\"]\n", "handler lind is x"),
        ] {
            for file in ["etc/containerd/config.toml", "var/lib/rancher/k3s/agent/etc/containerd/config.toml"] {
                write(node, file, &format!("{top}{table}"));
            }
            let all = value(node);
            assert_eq!(all.len(), 2);
            assert!(all.iter().all(|(_, found, less)| found.contains(said) && *less), "{top}: {all:?}");
        }
    }

    #[test]
    fn an_empty_directory_is_no_engine() {
        let folder = tempfile::tempdir().unwrap();
        for engine in ["etc/containerd", "etc/crio", "var/lib/rancher/k3s/agent/etc/containerd"] {
            std::fs::create_dir_all(folder.path().join(engine)).unwrap();
        }
        assert!(matches!(&value(folder.path())[..], [("engine", _, true)]));
    }
}
