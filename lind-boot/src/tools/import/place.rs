//! Where the paths of settings lie: in the project, which is a volume of the sandbox, or elsewhere,
//! where a sandbox shows nothing.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::cli::import::Format;

/// The directories by which paths are told apart.
pub struct Places {
    /// The project: commands start in it.
    pub project: PathBuf,
    /// The directory to which paths are relative.
    pub base: PathBuf,
    home: Option<PathBuf>,
}

/// A path of settings.
#[derive(PartialEq, Eq, Debug)]
pub enum Place {
    /// The project, or a directory above it.
    Project,
    /// A path in the project, relative to it; or a pattern, with `**/` at most at its beginning.
    Inside(String),
    /// An absolute path that has nothing to do with the project.
    Outside(String),
    /// A pattern that a policy cannot express, and that may match in the project.
    Unclear,
}

impl Places {
    /// The places for a file of settings, from the present directory.
    ///
    /// # Errors
    /// When there is no present directory.
    pub fn of(file: &Path, format: Format) -> Result<Places> {
        let here = std::env::current_dir().context("the present directory")?;
        let home = lind_engine::homes().next();
        let home = home.map(|home| home.canonicalize().unwrap_or(home));
        let folder = std::path::absolute(file)?.parent().map(Path::to_owned).unwrap_or_default();
        let folder = folder.canonicalize().unwrap_or(folder);
        let places = Places { base: here.clone(), project: here, home };
        Ok(if format == Format::Claude && folder.ends_with(".claude") { places.of_claude(&folder) } else { places })
    }

    /// Claude Code reads the files of the user's own `.claude` from there, and those of a project
    /// from the project.
    fn of_claude(mut self, folder: &Path) -> Places {
        let above = folder.parent().unwrap_or(folder).to_owned();
        if self.home.as_ref() == Some(&above) {
            self.base = folder.to_owned();
        } else {
            (self.base, self.project) = (above.clone(), above);
        }
        self
    }

    #[cfg(test)]
    pub fn at(project: &str, home: &str) -> Places {
        Places { project: project.into(), base: project.into(), home: Some(home.into()) }
    }

    #[cfg(test)]
    pub fn based(self, base: &str) -> Places {
        Places { base: base.into(), ..self }
    }

    /// Where a path lies. `*` and `?` match within a name, `**` names of any number.
    pub fn find(&self, text: &str) -> Place {
        if text.is_empty() || text.contains(['\0', '\\']) {
            return Place::Unclear;
        }
        let whole = match text.strip_prefix('~').filter(|rest| rest.is_empty() || rest.starts_with('/')) {
            Some(rest) => match self.home.as_deref().and_then(Path::to_str) {
                Some(home) => format!("{home}{rest}"),
                None => return Place::Outside(text.to_owned()),
            },
            None if text.starts_with('/') => text.to_owned(),
            None => match self.base.to_str() {
                Some(base) => format!("{base}/{text}"),
                None => return Place::Unclear,
            },
        };
        let Some(mut names) = tidied(&whole) else { return Place::Unclear };
        while names.last() == Some(&"**") {
            names.pop();
        }
        let plain = names.iter().take_while(|name| !is_pattern(name)).count();
        let (start, rest) = names.split_at(plain);
        let start = PathBuf::from(format!("/{}", start.join("/")));
        self.sorted(&start, rest)
    }

    /// Where a path lies that begins without a pattern.
    fn sorted(&self, start: &Path, rest: &[&str]) -> Place {
        let inside = start.strip_prefix(&self.project).ok().map(|path| path.to_str().unwrap_or_default());
        match (inside, rest) {
            (Some(""), []) => Place::Project,
            (Some(path), []) => Place::Inside(path.to_owned()),
            (Some(path), rest) => {
                let path = path.split('/').filter(|name| !name.is_empty());
                in_project(&path.chain(rest.iter().copied()).collect::<Vec<_>>())
            }
            (None, []) if self.project.starts_with(start) => Place::Project,
            (None, rest) if self.project.starts_with(start) => self.beginning_above(start, rest),
            (None, rest) => Place::Outside(
                [start.to_string_lossy().as_ref(), &rest.join("/")].join("/").trim_end_matches('/').to_owned(),
            ),
        }
    }

    /// A pattern that begins above the project.
    fn beginning_above(&self, start: &Path, rest: &[&str]) -> Place {
        let ["**", tail @ ..] = rest else { return Place::Unclear };
        let way = self.project.strip_prefix(start).map(|way| way.to_string_lossy().into_owned()).unwrap_or_default();
        let meets = tail.first().is_some_and(|name| way.split('/').any(|part| matches(name, part)));
        match meets {
            true if tail.len() == 1 => Place::Project,
            true => Place::Unclear,
            false => in_project(rest),
        }
    }
}

/// The names of an absolute path without `.` and `..`. None where `..` comes behind a pattern.
fn tidied(path: &str) -> Option<Vec<&str>> {
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." if names.last().is_some_and(|name| is_pattern(name)) => return None,
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    Some(names)
}

/// Whether a name has letters of patterns.
pub fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '[', ']'])
}

/// A pattern in the project. `**` in the middle becomes one at the beginning, which matches more.
fn in_project(names: &[&str]) -> Place {
    let behind = names.iter().rposition(|name| *name == "**");
    let names = behind.map_or(names, |at| &names[at + 1..]);
    if names.is_empty() || names.iter().any(|name| name.contains("**")) {
        return Place::Unclear;
    }
    Place::Inside(format!("{}{}", if behind.is_some() { "**/" } else { "" }, names.join("/")))
}

/// Whether a pattern of one name may match a name. A set in brackets counts as any letters.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.chars().next() {
        None => name.is_empty(),
        Some('*' | '[') => true,
        Some(first) => {
            let mut rest = name.chars();
            rest.next().is_some_and(|c| first == '?' || first.eq_ignore_ascii_case(&c))
                && matches(&pattern[first.len_utf8()..], rest.as_str())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inside(path: &str) -> Place {
        Place::Inside(path.into())
    }

    #[test]
    fn paths_are_sorted() {
        let places = Places::at("/home/me/p", "/home/me");
        for (text, place) in [
            (".", Place::Project),
            ("./", Place::Project),
            ("~", Place::Project),
            ("/", Place::Project),
            ("/**", Place::Project),
            ("/home/**", Place::Project),
            ("~/p", Place::Project),
            ("src/**", inside("src")),
            ("./a/../b/./c/", inside("b/c")),
            ("~/p/x", inside("x")),
            ("/home/me/p/x/*.pem", inside("x/*.pem")),
            ("**/.env", inside("**/.env")),
            ("src/**/*.key", inside("**/*.key")),
            ("/**/.env", inside("**/.env")),
            ("~/**/.env", inside("**/.env")),
            ("/**/p", Place::Project),
            ("/**/m*", Place::Project),
            ("/**/p/x", Place::Unclear),
            ("/home/*/p", Place::Unclear),
            ("a**b", Place::Unclear),
            ("x*/../../y", Place::Unclear),
            ("a\\b", Place::Unclear),
            ("", Place::Unclear),
            ("**", Place::Project),
            ("~/.ssh", Place::Outside("/home/me/.ssh".into())),
            ("../q/*.pem", Place::Outside("/home/me/q/*.pem".into())),
            ("/home/me/pp", Place::Outside("/home/me/pp".into())),
            ("~other/x", inside("~other/x")),
        ] {
            assert_eq!(places.find(text), place, "{text}");
        }
    }
}
