//! Policies: what a sandbox may do, as a TOML file. Those that come with lind-boot are such files too (`policies/`).

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// What a policy file says. Options of the command line go before it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Policy {
    /// Whether programs may use the host's network, within the rules.
    pub network: bool,
    /// What they may reach, as rules of the net grate.
    pub allow: Vec<String>,
    /// Whether nothing of the host may be changed.
    pub read_only: bool,
    /// Names in each volume that may not be changed.
    pub protect: Vec<String>,
    /// Limits: name and amount, as the resource grate has them.
    pub limits: Vec<(String, String)>,
}

/// The names of limits.
pub const LIMITS: [&str; 6] = ["memory", "cpu", "cages", "files", "threads", "disk"];

/// The policies that come with lind-boot.
const KNOWN: [(&str, &str); 4] = [
    ("agent", include_str!("../../policies/agent.toml")),
    ("build", include_str!("../../policies/build.toml")),
    ("readonly", include_str!("../../policies/readonly.toml")),
    ("untrusted", include_str!("../../policies/untrusted.toml")),
];

impl Policy {
    /// The policy of that name, or of that file if the name has a slash or a dot in it.
    ///
    /// # Errors
    /// When there is none, or what is wrong with it.
    pub fn named(name: &str) -> Result<Policy> {
        if let Some((_, text)) = KNOWN.iter().find(|(known, _)| *known == name) {
            return Policy::parse(name, text);
        }
        if !name.contains(['/', '.']) {
            let names = KNOWN.map(|(name, _)| name).join(", ");
            bail!("--policy {name}: no such policy; there are {names}, or name a file (./{name})");
        }
        let text = std::fs::read_to_string(Path::new(name)).with_context(|| format!("--policy {name}"))?;
        Policy::parse(name, &text)
    }

    fn parse(file: &str, text: &str) -> Result<Policy> {
        let table: Value = toml::from_str(text).with_context(|| format!("--policy {file}"))?;
        let mut policy = Policy::default();
        for (key, value) in table.as_object().into_iter().flatten() {
            policy.take(key, value).with_context(|| format!("--policy {file}: {key}"))?;
        }
        Ok(policy)
    }

    fn take(&mut self, key: &str, value: &Value) -> Result<()> {
        match key {
            "network" => {
                self.network = match value.as_str() {
                    Some("none") => false,
                    Some("host") => true,
                    _ => bail!("must be \"none\" or \"host\""),
                }
            }
            "allow" => self.allow = texts(value)?,
            "read-only" => self.read_only = value.as_bool().context("must be true or false")?,
            "protect" => {
                self.protect = texts(value)?;
                let wrong = |name: &&String| {
                    name.starts_with('/') || name.split('/').any(|part| part == ".." || part.is_empty())
                };
                if let Some(name) = self.protect.iter().find(wrong) {
                    bail!("{name}: names are relative to each volume, without `..`");
                }
            }
            "limits" => {
                for (limit, amount) in value.as_object().context("must be a table")? {
                    if !LIMITS.contains(&limit.as_str()) {
                        bail!("there is no limit {limit}; there are {}", LIMITS.join(", "));
                    }
                    let amount = match amount {
                        Value::String(text) => text.clone(),
                        Value::Number(number) => number.to_string(),
                        _ => bail!("{limit}: must be a number or a text such as \"64M\""),
                    };
                    self.limits.push((limit.clone(), amount));
                }
            }
            _ => bail!("unknown; there are network, allow, read-only, protect and limits"),
        }
        Ok(())
    }

    /// The amount of a limit.
    pub fn limit(&self, name: &str) -> Option<&str> {
        self.limits.iter().find(|(limit, _)| limit == name).map(|(_, amount)| amount.as_str())
    }
}

fn texts(value: &Value) -> Result<Vec<String>> {
    let all = value.as_array().context("must be a list of texts")?;
    all.iter().map(|text| text.as_str().map(str::to_owned).context("must be a list of texts")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policies_that_come_with_it_are_sound() {
        for (name, _) in KNOWN {
            let policy = Policy::named(name).unwrap();
            assert!(!policy.network && policy.limit("memory").is_some(), "{name}");
        }
        assert!(Policy::named("agent").unwrap().protect.contains(&".git/hooks".to_owned()));
        assert!(Policy::named("untrusted").unwrap().read_only);
    }

    #[test]
    fn mistakes_are_told_with_file_and_key() {
        let wrong = |text: &str| format!("{:#}", Policy::parse("p.toml", text).unwrap_err());
        assert_eq!(wrong("network = 1"), "--policy p.toml: network: must be \"none\" or \"host\"");
        assert!(wrong("netwrok = \"none\"").starts_with("--policy p.toml: netwrok: unknown"));
        assert!(wrong("protect = [\"/etc\"]").contains("relative"));
        assert!(wrong("protect = [\"a/../b\"]").contains("relative"));
        assert!(wrong("[limits]\nmemroy = 1").contains("no limit memroy"));
        assert!(wrong("network = ").starts_with("--policy p.toml: "));
        assert!(Policy::named("nobody").is_err() && Policy::named("./nowhere.toml").is_err());
    }
}
