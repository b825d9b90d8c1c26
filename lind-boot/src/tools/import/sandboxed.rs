//! The settings that Claude Code and srt have in common: Claude Code uses srt.

use serde::Deserialize;

use super::draft::{Draft, Fate};
use super::hosts::is_private;
use super::json::Key::{self, Holds, Lost, Read, Table};
use super::place::Place;
use crate::named::Changed;
use crate::plan::policy::Policy;
use lind_kernel::text::shell_word;

/// The settings from which a policy is made.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct Sandbox {
    /// Whether commands are confined; of Claude Code alone.
    pub enabled: Option<bool>,
    network: Network,
    filesystem: Filesystem,
    credentials: Credentials,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Network {
    allowed_domains: Vec<String>,
    denied_domains: Vec<String>,
    denied_resolved_addresses: Vec<String>,
    allow_unix_sockets: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Filesystem {
    allow_write: Vec<String>,
    deny_write: Vec<String>,
    deny_read: Vec<String>,
    allow_read: Vec<String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Credentials {
    files: Vec<CredentialFile>,
    env_vars: Vec<CredentialVariable>,
}

#[derive(Deserialize)]
struct CredentialFile {
    path: String,
    #[serde(default)]
    mode: String,
}

#[derive(Deserialize)]
struct CredentialVariable {
    name: String,
    #[serde(default)]
    mode: String,
}

const DIRECTLY: &str = "programs connect to the hosts of `allow` themselves, without a proxy";
const PART: &str = "it is about parts of the other sandbox";
const WEAKER: &str = "the sandbox is never weakened";
const MANAGED: &str = "settings of administrators are not read";

const NETWORK: &[(&str, Key)] = &[
    ("allowedDomains", Read),
    ("deniedDomains", Read),
    ("deniedResolvedAddresses", Read),
    ("allowUnixSockets", Read),
    ("deniedDomainReasons", Lost("a denial says what a program can do instead")),
    ("strictAllowlist", Holds("no host is reached that `allow` does not name")),
    ("allowManagedDomainsOnly", Lost(MANAGED)),
    ("allowAllDomains", Lost("a policy names the hosts; network = \"host\" would allow this host's own services, too")),
    ("allowAllUnixSockets", Lost("sockets in volumes are refused; name one, as in --allow 'out unix:/PATH'")),
    ("allowLocalBinding", Holds("the sandbox has a loopback of its own; -p publishes a port of it")),
    ("allowMachLookup", Lost("there is no such service on Linux")),
    ("httpProxyPort", Lost(DIRECTLY)),
    ("socksProxyPort", Lost(DIRECTLY)),
    ("parentProxy", Lost(DIRECTLY)),
    ("mitmProxy", Lost(DIRECTLY)),
    ("tlsTerminate", Lost(DIRECTLY)),
];

const FILESYSTEM: &[(&str, Key)] = &[
    ("allowWrite", Read),
    ("denyWrite", Read),
    ("denyRead", Read),
    ("allowRead", Read),
    (
        "allowGitConfig",
        Lost("git's configuration stays protected; to lift that, remove \"**/.git/config\" from `protect`"),
    ),
    ("allowManagedReadPathsOnly", Lost(MANAGED)),
    ("disabled", Lost("the sandbox always shows only what is mounted")),
];

/// The keys, and what becomes of each.
pub const KEYS: &[(&str, Key)] = &[
    ("network", Table(NETWORK)),
    ("filesystem", Table(FILESYSTEM)),
    (
        "credentials",
        Table(&[
            ("files", Read),
            ("envVars", Read),
            ("allowPlaintextInject", Lost(DIRECTLY)),
            ("awsPairs", Lost(DIRECTLY)),
            ("sigv4", Lost(DIRECTLY)),
        ]),
    ),
    ("enabled", Read),
    ("failIfUnavailable", Holds("lind-boot fails where it cannot confine a command")),
    ("autoAllowBashIfSandboxed", Lost("an agent decides itself which commands it asks about")),
    ("allowUnsandboxedCommands", Lost("every command runs in the sandbox")),
    ("excludedCommands", Lost("these commands run in the sandbox, too")),
    ("enabledPlatforms", Lost(PART)),
    ("ignoreViolations", Lost("a denied call is always reported")),
    ("enableWeakerNestedSandbox", Lost(WEAKER)),
    ("enableWeakerNetworkIsolation", Lost(WEAKER)),
    ("allowNestedUserNamespaces", Lost(WEAKER)),
    ("allowAppleEvents", Lost(WEAKER)),
    ("allowPty", Holds("a command has the terminal of its caller")),
    ("mandatoryDenySearchDepth", Holds("names are protected in every directory")),
    ("ripgrep", Lost(PART)),
    ("seccomp", Lost(PART)),
    ("bwrapPath", Lost(PART)),
    ("socatPath", Lost(PART)),
    ("javaAgentJarPath", Lost(PART)),
    ("windows", Lost(PART)),
    ("git", Lost("git is told its settings by variables: -e NAME=VALUE")),
];

/// Names that srt protects unasked, beside git's own.
const PROTECTED: [&str; 12] = [
    "**/.gitconfig",
    "**/.gitmodules",
    "**/.bashrc",
    "**/.bash_profile",
    "**/.zshrc",
    "**/.zprofile",
    "**/.profile",
    "**/.ripgreprc",
    "**/.mcp.json",
    "**/.vscode",
    "**/.idea",
    "**/.claude",
];

/// The forms that a path to be denied may have in these settings.
pub type Forms = fn(&Draft, &str) -> Vec<String>;

/// Takes the settings over. `prefix` is in front of their keys; `forms` reads a denied path.
pub fn take(sandbox: &Sandbox, prefix: &str, forms: Forms, draft: &mut Draft) -> anyhow::Result<()> {
    draft.protect(Policy::named("build", &Changed::default())?.protect.names);
    draft.protect(PROTECTED);
    let Sandbox { network, filesystem, credentials, .. } = sandbox;
    let key = |list: &str, at: usize| format!("{prefix}{list}[{at}]");
    for (at, path) in filesystem.allow_write.iter().enumerate() {
        draft.allow_write(&key("filesystem.allowWrite", at), path);
    }
    for (at, path) in filesystem.deny_write.iter().enumerate() {
        forms(draft, path).iter().for_each(|path| draft.deny_write(&key("filesystem.denyWrite", at), path));
    }
    reading(filesystem, &key, forms, draft);
    for (at, host) in network.allowed_domains.iter().enumerate() {
        draft.allow_host(&key("network.allowedDomains", at), host);
    }
    for (at, host) in network.denied_domains.iter().enumerate() {
        draft.deny_host(&key("network.deniedDomains", at), host);
    }
    for (at, range) in network.denied_resolved_addresses.iter().enumerate() {
        let key = key("network.deniedResolvedAddresses", at);
        match is_private(range) {
            true => draft.note(Fate::Holds, key, Some(range), "a name reaches public addresses only"),
            false => draft.allow_no_names(&key, range, "a policy has no denied addresses"),
        }
    }
    for (at, path) in network.allow_unix_sockets.iter().enumerate() {
        let rule = shell_word(format!("out unix:{path}"));
        let why = format!(
            "a socket outside of the sandbox is allowed by an option: --allow {rule}, and -v for where it lies"
        );
        draft.note(Fate::Lost, key("network.allowUnixSockets", at), Some(path), why);
    }
    secrets(credentials, &key, forms, draft);
    Ok(())
}

/// The files that may be read. A path that is allowed counts more than a denied one above it.
fn reading(filesystem: &Filesystem, key: &dyn Fn(&str, usize) -> String, forms: Forms, draft: &mut Draft) {
    let allowed: Vec<_> = filesystem.allow_read.iter().map(|path| draft.places.find(path)).collect();
    let project_is_allowed = allowed.contains(&Place::Project);
    for (at, path) in filesystem.deny_read.iter().enumerate() {
        let key = key("filesystem.denyRead", at);
        for path in forms(draft, path) {
            if project_is_allowed && draft.places.find(&path) == Place::Project {
                draft.unseen(&key, &path, ", but for the project");
            } else {
                draft.deny_read(&key, &path);
            }
        }
    }
    for ((at, path), place) in filesystem.allow_read.iter().enumerate().zip(&allowed) {
        match place {
            Place::Project => {}
            Place::Inside(inside) => draft.also_read(&key("filesystem.allowRead", at), inside),
            Place::Outside(outside) => {
                let why = format!("a policy mounts nothing; to read it: -v {}:ro", shell_word(outside));
                draft.note(Fate::Lost, key("filesystem.allowRead", at), Some(path), why);
            }
            Place::Unclear => {
                draft.note(Fate::Lost, key("filesystem.allowRead", at), Some(path), "the pattern cannot be expressed");
            }
        }
    }
}

/// Credentials. Those that are masked are not there at all.
fn secrets(credentials: &Credentials, key: &dyn Fn(&str, usize) -> String, forms: Forms, draft: &mut Draft) {
    const MASKED: &str = "nothing stands for the credential, and requests carry none";
    for (at, file) in credentials.files.iter().enumerate() {
        let key = key("credentials.files", at);
        if file.mode != "deny" {
            draft.note(Fate::Lost, format!("{key}.mode"), Some(&file.mode), MASKED);
        }
        forms(draft, &file.path).iter().for_each(|path| draft.deny_read(&key, path));
    }
    for (at, variable) in credentials.env_vars.iter().enumerate() {
        let key = key("credentials.envVars", at);
        if variable.mode != "deny" {
            draft.note(Fate::Lost, format!("{key}.mode"), Some(&variable.mode), MASKED);
        }
        draft.note(
            Fate::Holds,
            key,
            Some(&variable.name),
            "the sandbox has none of your variables; do not pass it on with -e",
        );
    }
}
