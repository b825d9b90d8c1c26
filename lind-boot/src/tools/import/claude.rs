//! settings.json of Claude Code: its sandbox, and the rules of its tools that the sandbox goes by.

use anyhow::Result;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::draft::{Draft, Fate};
use super::json::Key::{self, Lost, Read};
use super::json::{note_keys, parsed};
use super::place::Places;
use super::sandboxed::{KEYS, Sandbox, take};
use crate::plan::source::Source;

/// The settings from which a policy is made.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Settings {
    sandbox: Sandbox,
    permissions: Permissions,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Permissions {
    allow: Vec<String>,
    deny: Vec<String>,
    additional_directories: Vec<String>,
}

const TOOLS: &str = "it is about the agent's own tools, which are outside of the sandbox";

const PERMISSIONS: &[(&str, Key)] = &[
    ("allow", Read),
    ("deny", Read),
    ("additionalDirectories", Read),
    ("ask", Lost(TOOLS)),
    ("defaultMode", Lost(TOOLS)),
    ("disableBypassPermissionsMode", Lost(TOOLS)),
];

/// A rule of a tool.
enum Rule<'a> {
    /// Files that may be changed.
    Edit(&'a str),
    /// Files that may be read.
    Read(&'a str),
    /// A host.
    Host(&'a str),
    /// Another tool, or all of one.
    Other,
}

impl Rule<'_> {
    fn of(text: &str) -> Rule<'_> {
        let inside = text.split_once('(').and_then(|(tool, rest)| Some((tool, rest.strip_suffix(')')?)));
        match inside {
            Some(("Edit", path)) => Rule::Edit(path),
            Some(("Read", path)) => Rule::Read(path),
            Some(("WebFetch", what)) => what.strip_prefix("domain:").map_or(Rule::Other, Rule::Host),
            _ => Rule::Other,
        }
    }
}

/// Reads the settings.
///
/// # Errors
/// A mistake in them.
pub fn read(source: &Source<'_>, draft: &mut Draft) -> Result<()> {
    let settings: Settings = parsed(source)?;
    let table: Map<String, Value> = parsed(source)?;
    if settings.sandbox.enabled != Some(true) {
        let why = "the settings leave commands without a sandbox, and this policy confines them";
        draft.note(Fate::Narrower, "sandbox.enabled", None, why);
    }
    draft.changes_project = true;
    rules(&settings.permissions, draft);
    take(&settings.sandbox, "sandbox.", denied_forms, draft)?;
    let inside = |key: &str| table.get(key).and_then(Value::as_object).cloned().unwrap_or_default();
    note_keys(draft, "sandbox.", &inside("sandbox"), KEYS);
    note_keys(draft, "permissions.", &inside("permissions"), PERMISSIONS);
    let others: Vec<_> =
        table.keys().filter(|key| !matches!(key.as_str(), "sandbox" | "permissions" | "$schema")).collect();
    for key in others {
        draft.note(Fate::Lost, key.clone(), None, "it is not about the sandbox");
    }
    draft.settle()
}

/// The rules of tools. The sandbox of Claude Code goes by those for files and hosts.
fn rules(permissions: &Permissions, draft: &mut Draft) {
    for (at, text) in permissions.allow.iter().enumerate() {
        let key = format!("permissions.allow[{at}] {text}");
        match Rule::of(text) {
            Rule::Edit(path) => draft.allow_write(&key, &of_rule(&draft.places, path)),
            Rule::Host(host) => draft.allow_host(&key, host),
            Rule::Read(_) | Rule::Other => draft.note(Fate::Lost, key, None, TOOLS),
        }
    }
    for (at, text) in permissions.deny.iter().enumerate() {
        let key = format!("permissions.deny[{at}] {text}");
        match Rule::of(text) {
            Rule::Edit(path) => denied_rules(&draft.places, path).iter().for_each(|path| draft.deny_write(&key, path)),
            Rule::Read(path) => denied_rules(&draft.places, path).iter().for_each(|path| draft.deny_read(&key, path)),
            Rule::Host(host) => draft.deny_host(&key, host),
            Rule::Other => draft.note(Fate::Lost, key, None, TOOLS),
        }
    }
    for (at, path) in permissions.additional_directories.iter().enumerate() {
        draft.allow_write(&format!("permissions.additionalDirectories[{at}]"), path);
    }
}

/// A path of a rule, in the form that the sandbox has. In a rule two slashes lead to the root, one
/// to the project, and a path without one is relative to the directory in which the agent runs,
/// also in the user's own settings, where the sandbox's paths are relative to their file.
fn of_rule(places: &Places, path: &str) -> String {
    match path.strip_prefix('/') {
        Some(rest) if rest.starts_with('/') => rest.to_owned(),
        Some(rest) => in_project(places, rest),
        None if path == "~" || path.starts_with("~/") => path.to_owned(),
        None => in_project(places, path),
    }
}

/// A path below the project, for the sandbox.
fn in_project(places: &Places, path: &str) -> String {
    if places.base == places.project {
        return path.to_owned();
    }
    // An empty path is one that cannot be expressed.
    places.project.to_str().map_or_else(String::new, |project| format!("{project}/{path}"))
}

/// The paths that a rule denies. As in .gitignore, a name without a slash is one in any directory;
/// a slash behind it says that it is a directory. In older versions one slash in the user's own
/// settings led to the directory of these: there it denies both.
fn denied_rules(places: &Places, path: &str) -> Vec<String> {
    let anywhere = !path.trim_end_matches('/').contains('/') && !path.starts_with('~');
    let path = if anywhere { format!("**/{path}") } else { path.to_owned() };
    let older = path.strip_prefix('/').filter(|rest| !rest.starts_with('/') && places.base != places.project);
    let own = of_rule(places, &path);
    std::iter::once(own).chain(older.map(|rest| format!("./{rest}"))).collect()
}

/// The forms of a denied path. With one slash it is absolute, and was relative to the settings in
/// older versions: both are denied where there is such a file.
fn denied_forms(draft: &Draft, path: &str) -> Vec<String> {
    let older = path.strip_prefix('/').filter(|rest| !rest.starts_with('/') && !rest.is_empty());
    let older = older.filter(|rest| draft.places.base.join(rest).symlink_metadata().is_ok());
    std::iter::once(path.to_owned()).chain(older.map(|rest| format!("./{rest}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_rules_are_those_of_the_sandbox() {
        let project = Places::at("/home/me/p", "/home/me");
        let user = Places::at("/home/me/p", "/home/me").based("/home/me/.claude");
        for (rule, of_project, of_user) in [
            ("//etc/x", "/etc/x", "/etc/x"),
            ("/src/**", "src/**", "/home/me/p/src/**"),
            ("~/.ssh/**", "~/.ssh/**", "~/.ssh/**"),
            ("./out", "./out", "/home/me/p/./out"),
            (".env", ".env", "/home/me/p/.env"),
        ] {
            assert_eq!([of_rule(&project, rule), of_rule(&user, rule)], [of_project, of_user]);
        }
        for (rule, paths) in [(".env", "**/.env"), ("./.env", "./.env"), ("*.pem", "**/*.pem"), ("out/", "**/out/")] {
            assert_eq!(denied_rules(&project, rule), [paths]);
        }
        assert_eq!(denied_rules(&user, ".env"), ["/home/me/p/**/.env"]);
        assert_eq!(denied_rules(&user, "/x"), ["/home/me/p/x", "./x"]);
        assert_eq!(denied_rules(&user, "//x"), ["/x"]);
    }
}
