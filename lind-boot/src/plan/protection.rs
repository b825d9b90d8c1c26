//! The options of the write filter for protected names of volumes: files with such names cannot be
//! changed or created.

use std::path::{Path, PathBuf};

use super::policy::Policy;
use super::repository;
use super::step::{Setting, Value};
use super::volume::{Volume, inside};

/// The prefix of a name that is protected in all repositories.
const IN_GIT: &str = "**/.git/";

/// The most names of a protected directory that are checked for links.
const NAMES: usize = 1000;

/// The options. Empty if nothing is protected.
pub fn settings(policy: &Policy, volumes: &[Volume]) -> Vec<Setting> {
    let mut settings = Vec::new();
    let changed = || volumes.iter().filter(|volume| volume.can_be_changed() && volume.host.is_dir());
    let repositories = repository::unusual(volumes);
    for volume in changed() {
        settings.extend(policy.protected().map(|name| option(protects(name), &volume.guest.join(name))));
        let linked = policy.protected().flat_map(|name| where_links_lead(volume, name));
        let hidden = hidden(volume, policy).into_iter().flat_map(|name| where_links_lead(volume, &name));
        settings.extend(
            linked.chain(hidden).filter_map(|path| inside(&path, volumes)).map(|path| option("--protect", &path)),
        );
        if policy.protect.hidden {
            settings.push(option("--hidden", &volume.guest));
        }
        if policy.protect.names.iter().any(|name| name.starts_with("**/")) {
            let found = rustix::fs::statfs(&volume.host).ok().and_then(|found| short_names(found.f_type));
            settings.extend(found.map(|names| option("--protect", &volume.guest.join(names))));
        }
    }
    if policy.protect.hidden && !settings.is_empty() {
        settings.push(option("--harmless", Path::new(&policy.protect.except.join("/"))));
    }
    for repository in &repositories {
        let own = policy.protected().filter_map(|name| name.strip_prefix(IN_GIT));
        settings.extend(own.map(|name| option("--protect", &repository.join(name))));
    }
    // A file of this name makes git take its directory for a repository, and use the `config`
    // beside it.
    if policy.protect.names.iter().any(|name| name.starts_with(IN_GIT)) {
        for volume in changed() {
            settings.push(option("--confine", &volume.guest.join("**/HEAD")));
            settings.push(option("--inside", &volume.guest.join("**/.git")));
        }
        settings.extend(repositories.iter().map(|repository| option("--inside", repository)));
    }
    settings
}

/// The option for a name of a policy. Where `.git` is above it, no such directory can be made: that
/// would be a repository. Other directories above a name do no harm as long as they are empty.
fn protects(name: &str) -> &'static str {
    let name = name.strip_prefix("**/").unwrap_or(name);
    if name.contains('/') && !name.starts_with(".git/") { "--protect-below" } else { "--protect" }
}

fn option(name: &'static str, path: &Path) -> Setting {
    Setting::new(name, Value::text(path))
}

/// The names at the top of a volume that are protected for their leading dot, as patterns of a
/// policy.
fn hidden(volume: &Volume, policy: &Policy) -> Vec<String> {
    if !policy.protect.hidden {
        return Vec::new();
    }
    let entries = std::fs::read_dir(&volume.host).into_iter().flatten().filter_map(Result::ok);
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let names =
        names.filter(|name| name.starts_with('.') && !policy.protect.except.iter().any(|except| except == name));
    names.take(NAMES).map(|name| format!("**/{name}")).collect()
}

/// The pattern of short names (8.3) that a file system of this type gives files beside their own:
/// `.git` can be opened as `GIT~1` there, `.mcp.json` as `MCP~1.JSO`.
fn short_names(kind: i64) -> Option<&'static str> {
    // FAT, NTFS with its two drivers, and FUSE on a block device, which is usually one of the two.
    const KINDS: [i64; 4] = [0x4d44, 0x5346_544e, 0x7366_746e, 0x6573_5546];
    KINDS.contains(&kind).then_some("**/*~[0-9]*")
}

/// The targets of the host's links with a protected name at the top of a volume, or in a protected
/// directory: a tool follows them, and so could a program that changes a target.
fn where_links_lead(volume: &Volume, name: &str) -> Vec<PathBuf> {
    let Some(name) = name.strip_prefix("**/").filter(|name| !name.contains('*')) else { return Vec::new() };
    let path = volume.host.join(name);
    let Ok(found) = path.canonicalize() else { return Vec::new() };
    let entries = std::fs::read_dir(&path).into_iter().flatten().take(NAMES).filter_map(Result::ok);
    let links = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    let led = links.filter_map(|entry| entry.path().canonicalize().ok());
    std::iter::once(found).filter(|found| *found != path).chain(led).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::super::policy::Protect;
    use super::*;

    /// `tests/sandbox/protection.py` tries the names.
    #[test]
    fn short_names_are_protected_where_there_are_any() {
        assert_eq!([0x4d44, 0x7366_746e, 0xef53].map(short_names), [Some("**/*~[0-9]*"), Some("**/*~[0-9]*"), None]);
    }

    #[test]
    fn links_that_tools_follow_are_followed() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let project = folder.join("p");
        std::fs::create_dir_all(project.join(".git/hooks")).unwrap();
        std::fs::create_dir_all(project.join("tools/vs")).unwrap();
        std::fs::write(project.join("tools/hook"), "").unwrap();
        std::fs::write(folder.join("outside"), "").unwrap();
        symlink("../../tools/hook", project.join(".git/hooks/pre-commit")).unwrap();
        symlink("../../../outside", project.join(".git/hooks/post-commit")).unwrap();
        symlink("tools/vs", project.join(".vscode")).unwrap();
        symlink("nowhere", project.join(".envrc")).unwrap();
        let volume = Volume { host: project, guest: "/g".into(), read_only: false, overlay: None };
        let names = ["**/.git/hooks", "**/.vscode", "**/.envrc"].map(str::to_owned).to_vec();
        let settings =
            settings(&Policy { protect: Protect { names, ..Protect::default() }, ..Policy::default() }, &[volume]);
        let found = super::super::step::words(&[super::super::step::Step { settings, ..Default::default() }]);
        let found: Vec<_> = found[1..].iter().map(|word| word.to_str().unwrap()).collect();
        assert_eq!(found[3..5], ["--protect=/g/tools/hook", "--protect=/g/tools/vs"]);
        assert_eq!(found[5..], ["--confine=/g/**/HEAD", "--inside=/g/**/.git"]);
    }
}
