//! A recipe: what an image consists of, and how its program is started.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::plan::source::Source;

/// A recipe, a TOML file. Its paths are relative to it.
#[derive(Deserialize, Debug, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Recipe {
    /// An image whose layers come first, and whose settings hold unless others are given: an
    /// archive or the directory of a layout.
    pub base: Option<PathBuf>,
    /// The files that become a layer.
    pub copy: Vec<Copy>,
    /// The program and its first arguments.
    pub entrypoint: Option<Vec<String>>,
    /// Further arguments, which those of the engine's command line replace.
    pub cmd: Option<Vec<String>>,
    /// Variables of the environment.
    pub env: BTreeMap<String, String>,
    /// The user: a name or number, or both of user and group with a colon between them.
    pub user: Option<String>,
    /// The working directory.
    pub workdir: Option<String>,
    /// The signal that asks the program to end.
    pub stop_signal: Option<String>,
    /// Labels of the image.
    pub labels: BTreeMap<String, String>,
    /// Annotations of its manifest.
    pub annotations: BTreeMap<String, String>,
}

/// A file or directory, and its path in the image.
#[derive(Deserialize, Debug, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Copy {
    /// A file, or a directory with all that is in it.
    pub from: PathBuf,
    /// Its path in the image.
    pub to: String,
}

impl Recipe {
    /// Reads a recipe.
    ///
    /// # Errors
    /// The place of a mistake.
    pub fn read(file: &Path) -> Result<Recipe> {
        let name = file.display().to_string();
        let text = std::fs::read_to_string(file).with_context(|| name.clone())?;
        let mut recipe: Recipe = Source { name: &name, text: &text }.read()?;
        recipe.check().with_context(|| name)?;
        let folder = file.parent().unwrap_or(Path::new(""));
        recipe.base = recipe.base.map(|base| folder.join(base));
        for copy in &mut recipe.copy {
            copy.from = folder.join(&copy.from);
        }
        Ok(recipe)
    }

    /// The image of a directory, whose command is given when it is run.
    pub fn of_directory(folder: &Path) -> Recipe {
        Recipe { copy: vec![Copy { from: folder.to_owned(), to: "/".to_owned() }], ..Recipe::default() }
    }

    /// The image of one module: the program at `/bin/NAME`.
    pub fn of_module(file: &Path, name: &str) -> Recipe {
        let to = format!("/bin/{name}");
        let entrypoint = Some(vec![to.clone()]);
        Recipe { copy: vec![Copy { from: file.to_owned(), to }], entrypoint, ..Recipe::default() }
    }

    fn check(&self) -> Result<()> {
        for copy in &self.copy {
            let is_inside = copy.to.starts_with('/') && copy.to.split('/').all(|part| part != "." && part != "..");
            ensure!(is_inside, "copy: to = {:?}: must be an absolute path without . and ..", copy.to);
        }
        if let Some(name) = self.env.keys().find(|name| name.is_empty() || name.contains('=')) {
            anyhow::bail!("env: {name:?} is not the name of a variable");
        }
        if let Some(workdir) = self.workdir.as_ref().filter(|workdir| !workdir.starts_with('/')) {
            anyhow::bail!("workdir: {workdir:?} is not an absolute path");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Recipe> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("recipe.toml");
        std::fs::write(&file, text).unwrap();
        let mut recipe = Recipe::read(&file)?;
        for copy in &mut recipe.copy {
            copy.from = copy.from.strip_prefix(folder.path()).unwrap().to_owned();
        }
        Ok(recipe)
    }

    #[test]
    fn recipes_are_read() {
        let recipe = read(
            "copy = [{ from = 'root', to = '/' }]\nentrypoint = ['/bin/a']\nenv = { A = 'b' }\n[labels]\nx = 'y'\n",
        )
        .unwrap();
        assert_eq!(recipe.copy, [Copy { from: "root".into(), to: "/".to_owned() }]);
        assert_eq!((recipe.env["A"].as_str(), recipe.labels["x"].as_str()), ("b", "y"));
        assert!(read("").unwrap().copy.is_empty());
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("entrypiont = ['a']", "entrypiont"),
            ("copy = [{ from = 'a' }]", "to"),
            ("copy = [{ from = 'a', to = '/', mode = 5 }]", "mode"),
            ("copy = [{ from = 'a', to = 'b' }]", "absolute"),
            ("copy = [{ from = 'a', to = '/b/../..' }]", "absolute"),
            ("env = { 'A=B' = 'c' }", "variable"),
            ("workdir = 'w'", "absolute"),
            ("entrypoint = 'a'", "entrypoint"),
        ] {
            let why = format!("{:#}", read(text).unwrap_err());
            assert!(why.contains("recipe.toml") && why.contains(part), "{text}: {why}");
        }
    }
}
