//! config.toml of Codex: its permission profiles, and the older `sandbox_mode`.

use std::collections::BTreeMap;
use std::fmt;

use anyhow::{Result, bail, ensure};
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::draft::{Draft, Fate};
use super::place::Place;
use crate::plan::source::Source;
use lind_kernel::text::shell_word;

/// The keys of a file that are about its sandbox.
pub const KEYS: [&str; 4] = ["permissions", "default_permissions", "sandbox_mode", "sandbox_workspace_write"];

/// The most profiles that extend one another.
const DEEPEST: usize = 16;

/// The settings from which a policy is made.
#[derive(Deserialize)]
struct Config {
    sandbox_mode: Option<Mode>,
    #[serde(default)]
    sandbox_workspace_write: Workspace,
    default_permissions: Option<String>,
    #[serde(default)]
    permissions: BTreeMap<String, Profile>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
enum Mode {
    ReadOnly,
    WorkspaceWrite,
    DangerFullAccess,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Workspace {
    writable_roots: Vec<String>,
    network_access: bool,
}

/// A profile. Of those that it extends it takes what it does not say itself.
#[derive(Deserialize, Clone, Default)]
#[serde(default)]
struct Profile {
    extends: Option<String>,
    workspace_roots: BTreeMap<String, bool>,
    filesystem: BTreeMap<String, Entry>,
    network: Network,
}

#[derive(Deserialize, Clone, Default)]
#[serde(default)]
struct Network {
    enabled: Option<bool>,
    mode: Option<String>,
    domains: BTreeMap<String, Verdict>,
    unix_sockets: BTreeMap<String, String>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Allow,
    Deny,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "lowercase")]
enum Access {
    Write,
    Read,
    #[serde(alias = "none")]
    Deny,
}

/// The access to a path in a profile.
#[derive(Clone)]
enum Entry {
    Whole(Access),
    Below(BTreeMap<String, Access>),
    /// A number or the like: an option among the paths.
    Option,
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Entry, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Entry;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("read, write or deny, or a table of paths with these")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Entry, E> {
                Access::deserialize(serde::de::value::StrDeserializer::new(text)).map(Entry::Whole)
            }

            fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Entry, A::Error> {
                let mut all = BTreeMap::new();
                while let Some((path, access)) = from.next_entry()? {
                    all.insert(path, access);
                }
                Ok(Entry::Below(all))
            }

            fn visit_bool<E>(self, _: bool) -> Result<Entry, E> {
                Ok(Entry::Option)
            }

            fn visit_i64<E>(self, _: i64) -> Result<Entry, E> {
                Ok(Entry::Option)
            }
        }
        from.deserialize_any(Any)
    }
}

/// The names at the top of a workspace that Codex itself protects.
const PROTECTED: [&str; 3] = [".git", ".agents", ".codex"];

/// Keys of a profile and of its network that are read.
const OF_PROFILE: [&str; 5] = ["extends", "description", "workspace_roots", "filesystem", "network"];
const OF_NETWORK: [&str; 5] = ["enabled", "mode", "domains", "unix_sockets", "allow_local_binding"];

/// Reads a file.
///
/// # Errors
/// A mistake in it, or a profile that is missing.
pub fn read(source: &Source<'_>, draft: &mut Draft) -> Result<()> {
    let config: Config = source.read()?;
    let table: toml::Table = source.read()?;
    match config.sandbox_mode {
        Some(mode) => {
            of_mode(mode, &config.sandbox_workspace_write, draft);
            for key in ["default_permissions", "permissions"].iter().filter(|key| table.contains_key(**key)) {
                draft.note(Fate::Lost, *key, None, "Codex goes by `sandbox_mode`, where there is one");
            }
            let known = ["writable_roots", "network_access", "exclude_slash_tmp", "exclude_tmpdir_env_var"];
            note_keys(draft, "sandbox_workspace_write.", table.get("sandbox_workspace_write"), &known);
        }
        None => {
            let name = chosen(source, &config)?;
            of_profile(source, &config, &name, draft)?;
            note_profiles(draft, &name, &table);
        }
    }
    for key in table.keys().filter(|key| !KEYS.contains(&key.as_str())) {
        draft.note(Fate::Lost, key.clone(), None, "it is not about the sandbox");
    }
    draft.settle()
}

fn of_mode(mode: Mode, workspace: &Workspace, draft: &mut Draft) {
    draft.protect(PROTECTED);
    draft.changes_project = !matches!(mode, Mode::ReadOnly);
    match mode {
        Mode::ReadOnly => {}
        Mode::DangerFullAccess => unconfined(draft, "sandbox_mode"),
        Mode::WorkspaceWrite => {
            draft.network = workspace.network_access;
            for (at, path) in workspace.writable_roots.iter().enumerate() {
                draft.allow_write(&format!("sandbox_workspace_write.writable_roots[{at}]"), path);
            }
        }
    }
}

fn unconfined(draft: &mut Draft, key: &str) {
    let why = "the sandbox always confines: the project can be changed, and no host is reached";
    draft.note(Fate::Narrower, key, Some("danger-full-access"), why);
}

/// The name of the profile that is used.
fn chosen(source: &Source<'_>, config: &Config) -> Result<String> {
    let names: Vec<_> = config.permissions.keys().collect();
    match (&config.default_permissions, &names[..]) {
        (Some(name), _) => Ok(name.clone()),
        (None, [only]) => Ok((*only).clone()),
        (None, []) => bail!("{}: has neither `sandbox_mode` nor `permissions`", source.name),
        (None, _) => bail!("{}: has several profiles; name one by `default_permissions`", source.name),
    }
}

/// A profile with all that it extends. `DEEPEST` ends a circle.
fn whole(source: &Source<'_>, config: &Config, name: &str, depth: usize) -> Result<Profile> {
    ensure!(
        depth < DEEPEST,
        "{}: permissions.{name}: the profiles extend one another in a circle, or too deep",
        source.name
    );
    let below = |paths: &[(&str, Access)]| {
        Entry::Below(paths.iter().map(|(path, access)| ((*path).to_owned(), *access)).collect())
    };
    let root = (":root".to_owned(), Entry::Whole(Access::Read));
    match name {
        ":read-only" => return Ok(Profile { filesystem: [root].into(), ..Profile::default() }),
        ":workspace" => {
            let roots = (":workspace_roots".to_owned(), below(&[(".", Access::Write)]));
            return Ok(Profile { filesystem: [root, roots].into(), ..Profile::default() });
        }
        _ => {}
    }
    let Some(own) = config.permissions.get(name) else {
        bail!("{}: permissions.{name}: there is no such profile", source.name)
    };
    let Some(parent) = &own.extends else { return Ok(own.clone()) };
    Ok(whole(source, config, parent, depth + 1)?.with(own))
}

impl Profile {
    /// This profile with what another one says.
    fn with(mut self, own: &Profile) -> Profile {
        for (path, entry) in &own.filesystem {
            match (self.filesystem.get_mut(path), entry) {
                (Some(Entry::Below(all)), Entry::Below(more)) => all.extend(more.clone()),
                _ => drop(self.filesystem.insert(path.clone(), entry.clone())),
            }
        }
        self.workspace_roots.extend(own.workspace_roots.clone());
        self.network.enabled = own.network.enabled.or(self.network.enabled);
        self.network.mode = own.network.mode.clone().or(self.network.mode);
        self.network.domains.extend(own.network.domains.clone());
        self.network.unix_sockets.extend(own.network.unix_sockets.clone());
        self
    }

    /// All paths with their access: the key, the path as settings have it, and the access.
    fn paths(&self, key: &str) -> Vec<(String, String, Access)> {
        let mut all = Vec::new();
        for (path, entry) in &self.filesystem {
            let path = if path == ":project_roots" { ":workspace_roots" } else { path };
            let of = |below: &str| match (path, below) {
                (":workspace_roots", below) => format!("./{below}"),
                (":root", "") => "/".to_owned(),
                (path, "") => path.to_owned(),
                (path, below) => format!("{}/{below}", if path == ":root" { "" } else { path }),
            };
            match entry {
                Entry::Whole(access) => all.push((format!("{key}.filesystem"), of(""), *access)),
                Entry::Below(paths) => {
                    all.extend(
                        paths
                            .iter()
                            .map(|(below, access)| (format!("{key}.filesystem.\"{path}\""), of(below), *access)),
                    );
                }
                Entry::Option => {}
            }
        }
        all
    }
}

fn of_profile(source: &Source<'_>, config: &Config, name: &str, draft: &mut Draft) -> Result<()> {
    if name == ":danger-full-access" {
        draft.changes_project = true;
        draft.protect(PROTECTED);
        unconfined(draft, "default_permissions");
        return Ok(());
    }
    let profile = whole(source, config, name, 0)?;
    let key = format!("permissions.{name}");
    for (path, _) in profile.workspace_roots.iter().filter(|(_, is_one)| **is_one) {
        let why = format!("a policy mounts nothing; to have it there: -v {}", shell_word(path));
        draft.note(Fate::Lost, format!("{key}.workspace_roots"), Some(path), why);
    }
    files(&profile, &key, draft);
    network(&profile.network, &key, draft);
    Ok(())
}

/// The files of a profile. For the project counts the entry of the nearest directory above it.
fn files(profile: &Profile, key: &str, draft: &mut Draft) {
    let paths = profile.paths(key);
    let special = |path: &str| path.starts_with(':');
    let above = paths.iter().filter(|(_, path, _)| !special(path) && draft.places.find(path) == Place::Project);
    // The project itself is `./.`; of others the longest path is the nearest.
    let nearest = above.max_by_key(|(_, path, _)| if path.starts_with("./") { usize::MAX } else { path.len() });
    let project = nearest.map_or(Access::Deny, |(_, _, access)| *access);
    draft.changes_project = project == Access::Write;
    if project == Access::Deny {
        draft.read_nothing();
        draft.note(Fate::Narrower, key, None, "of the project only what the profile names can be read");
    }
    let is_named =
        |name: &str| paths.iter().any(|(_, path, access)| *access == Access::Write && *path == format!("./{name}"));
    draft.protect(PROTECTED.into_iter().filter(|name| !is_named(name)));
    for (key, path, access) in paths.iter().filter(|(_, path, _)| !special(path)) {
        let place = draft.places.find(path);
        match (place, access) {
            (Place::Project, _) => {}
            (Place::Inside(inside), Access::Write) => {
                draft.allow_write(key, path);
                draft.also_read(key, &inside);
            }
            (_, Access::Write) => draft.allow_write(key, path),
            (Place::Inside(inside), Access::Read) => {
                draft.deny_write(key, path);
                draft.also_read(key, &inside);
            }
            (Place::Outside(outside), Access::Read) => {
                let why = format!("a policy mounts nothing; to read it: -v {}:ro", shell_word(outside));
                draft.note(Fate::Lost, key, Some(path), why);
            }
            (Place::Unclear, Access::Read) => draft.deny_write(key, path),
            (Place::Outside(_), Access::Deny) => draft.unseen(key, path, ""),
            (_, Access::Deny) => {
                draft.deny_write(key, path);
                draft.deny_read(key, path);
            }
        }
    }
    for (key, path, _) in paths.iter().filter(|(_, path, _)| special(path)) {
        let fate = match path.as_str() {
            ":minimal" => (Fate::Holds, "the image has what programs need"),
            ":tmpdir" | ":slash_tmp" => (Fate::Holds, "the sandbox has an empty /tmp of its own, in memory"),
            _ => (Fate::Lost, "an unknown place"),
        };
        draft.note(fate.0, key, Some(path), fate.1);
    }
}

fn network(network: &Network, key: &str, draft: &mut Draft) {
    let key = |name: &str| format!("{key}.network.{name}");
    let is_on = network.enabled == Some(true);
    let mode = network.mode.as_deref().filter(|mode| *mode != "full");
    let is_off = match mode {
        Some(mode) if is_on => {
            let why = "no host is reached, since a policy does not go by the methods of requests";
            draft.note(Fate::Narrower, key("mode"), Some(mode), why);
            true
        }
        _ => !is_on,
    };
    if !is_off && network.domains.is_empty() {
        let why = "no host is reached, since none is named; name them in `allow`, or set network = \"host\"";
        draft.note(Fate::Narrower, key("enabled"), None, why);
    }
    for (host, verdict) in &network.domains {
        match (verdict, host.strip_prefix("**.")) {
            _ if is_off && *verdict == Verdict::Allow => {
                draft.note(Fate::Holds, key("domains"), Some(host), "the network is off, and stays so");
            }
            (Verdict::Allow, Some(name)) => {
                draft.allow_host(&key("domains"), name);
                draft.allow_host(&key("domains"), &format!("*.{name}"));
            }
            (Verdict::Allow, None) => draft.allow_host(&key("domains"), host),
            (Verdict::Deny, Some(name)) => {
                draft.deny_host(&key("domains"), name);
                draft.deny_host(&key("domains"), &format!("*.{name}"));
            }
            (Verdict::Deny, None) => draft.deny_host(&key("domains"), host),
        }
    }
    for (path, _) in network.unix_sockets.iter().filter(|(_, verdict)| *verdict == "allow") {
        let rule = shell_word(format!("out unix:{path}"));
        let why = format!(
            "a socket outside of the sandbox is allowed by an option: --allow {rule}, and -v for where it lies"
        );
        draft.note(Fate::Lost, key("unix_sockets"), Some(path), why);
    }
}

/// Notes what the tables of profiles have besides.
fn note_profiles(draft: &mut Draft, chosen: &str, table: &toml::Table) {
    let profiles = table.get("permissions").and_then(toml::Value::as_table).into_iter().flatten();
    for (name, profile) in profiles {
        let key = format!("permissions.{name}.");
        note_keys(draft, &key, Some(profile), &OF_PROFILE);
        note_keys(draft, &format!("{key}network."), profile.get("network"), &OF_NETWORK);
        let options = profile.get("filesystem").and_then(toml::Value::as_table).into_iter().flatten();
        for (option, value) in options.filter(|(_, value)| !value.is_str() && !value.is_table()) {
            match option.as_str() {
                "glob_scan_max_depth" => {
                    draft.note(Fate::Holds, format!("{key}filesystem.{option}"), None, "patterns match at any depth");
                }
                _ if value.as_bool() == Some(false) => {}
                _ => draft.note(Fate::Lost, format!("{key}filesystem.{option}"), None, "an unknown key"),
            }
        }
        if name != chosen {
            draft.note(
                Fate::Lost,
                key.trim_end_matches('.'),
                None,
                format!("the profile that is used is {chosen}, with what it extends"),
            );
        }
    }
    if table.contains_key("sandbox_workspace_write") {
        draft.note(Fate::Lost, "sandbox_workspace_write", None, "it goes with `sandbox_mode`, which is missing");
    }
}

/// Notes the keys of a table that are not read. Those that are off say nothing.
fn note_keys(draft: &mut Draft, prefix: &str, table: Option<&toml::Value>, known: &[&str]) {
    let keys = table.and_then(toml::Value::as_table).into_iter().flatten();
    let lost = keys.filter(|(key, value)| !known.contains(&key.as_str()) && value.as_bool() != Some(false));
    for (key, _) in lost {
        let why = match key.as_str() {
            "proxy_url" | "socks_url" | "enable_socks5" | "enable_socks5_udp" | "allow_upstream_proxy" => {
                "programs connect to the hosts of `allow` themselves, without a proxy"
            }
            _ if key.starts_with("dangerously_") => "the sandbox is never weakened",
            _ => "an unknown key",
        };
        draft.note(Fate::Lost, format!("{prefix}{key}"), None, why);
    }
}
