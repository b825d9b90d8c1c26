//! Paths of a policy that are relative to its volumes: `src/**` is `src` in each volume, and `.`
//! the volume itself. A policy that was learned in one directory so fits a copy of it in another.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::policy::Policy;

/// The volume itself.
const TOP: &str = ".";

/// Whether a path is relative to each volume.
pub fn is_relative(pattern: &str) -> bool {
    !pattern.starts_with('/')
}

/// Whether a relative path is well-formed.
pub fn is_sound(pattern: &str) -> bool {
    pattern == TOP || pattern.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// The policy with absolute paths, for these volumes.
///
/// # Errors
/// When the path of a volume would be taken for a pattern.
pub fn resolved(policy: &Policy, volumes: &[PathBuf]) -> Result<Policy> {
    let mut policy = policy.clone();
    for rules in policy.program.values_mut() {
        *rules = resolved(rules, volumes)?;
    }
    for list in [&mut policy.read, &mut policy.write, &mut policy.programs].into_iter().flatten() {
        let all = std::mem::take(list);
        for pattern in all {
            if !is_relative(&pattern) {
                list.push(pattern);
                continue;
            }
            for volume in volumes {
                list.push(joined(volume, &pattern)?);
            }
        }
    }
    Ok(policy)
}

fn joined(volume: &Path, pattern: &str) -> Result<String> {
    let shown = volume.display();
    let top =
        volume.to_str().with_context(|| format!("-v {shown}: is not UTF-8, so the policy's {pattern} cannot be applied to it; mount it elsewhere, as in -v {shown}:/src"))?;
    let is_plain = !top.contains(['*', '?']);
    ensure!(
        is_plain,
        "-v {shown}: has a `*` or `?`, so the policy's {pattern} cannot be applied to it; mount it elsewhere, as in -v {shown}:/src"
    );
    Ok(if pattern == TOP { top.to_owned() } else { format!("{}/{pattern}", top.trim_end_matches('/')) })
}

/// Makes a path relative if there is only one volume. With several it stays absolute: otherwise it
/// would be allowed in the other volumes too.
pub fn shortened(path: String, volumes: &[PathBuf]) -> String {
    let [volume] = volumes else { return path };
    let Ok(rest) = Path::new(&path).strip_prefix(volume) else { return path };
    match rest.to_str() {
        Some("") => TOP.to_owned(),
        Some(rest) if is_sound(rest) && volume.to_str().is_some_and(|top| !top.contains(['*', '?'])) => rest.to_owned(),
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_fit_the_volume() {
        let list = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
        let policy = Policy { read: list(&["src/**", ".", "/etc/a"]), write: list(&[]), ..Policy::default() };
        let of = |volumes: &[&str]| resolved(&policy, &volumes.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(of(&["/p"]).unwrap().read, list(&["/p/src/**", "/p", "/etc/a"]));
        assert_eq!(of(&["/p", "/q"]).unwrap().read, list(&["/p/src/**", "/q/src/**", "/p", "/q", "/etc/a"]));
        assert_eq!(of(&[]).unwrap(), Policy { read: list(&["/etc/a"]), ..policy.clone() });
        assert!(of(&["/a*"]).is_err());
        let short = |path: &str, volumes: &[&str]| {
            shortened(path.to_owned(), &volumes.iter().map(PathBuf::from).collect::<Vec<_>>())
        };
        for (path, volumes, expected) in [
            ("/p/a/**", &["/p"][..], "a/**"),
            ("/p", &["/p"], "."),
            ("/pq", &["/p"], "/pq"),
            ("/p/a", &["/p", "/q"], "/p/a"),
            ("/p/**", &["/p"], "**"),
            ("/a?/b", &["/a?"], "/a?/b"),
        ] {
            assert_eq!(short(path, volumes), expected);
        }
        assert!(is_sound("a/b") && is_sound(".") && !is_sound("a/../b") && !is_sound("./a") && !is_sound(""));
    }
}
