//! `session allow`, `deny`, `revoke` and `policy`.

use std::fmt::Write;

use lind_kernel::text;
use serde_json::{Value, json};

use super::link::Link;
use crate::cli::policy::{Allow, Deny, Policy, Rule};
use crate::failure::{self, Failure};

/// Allows something more, from the next call on.
///
/// # Errors
/// A mistake in the rule; a session that does not exist.
pub fn allow(allow: &Allow) -> Result<(), Failure> {
    let longest = allow.longest.map(|time| time.as_secs_f64());
    let request = json!({"do": "allow", "rule": allow.rule, "once": allow.once, "for": longest});
    Link::to(&allow.name)?.ask(request)?;
    Ok(())
}

/// Denies something more.
///
/// # Errors
/// As `allow`.
pub fn deny(rule: &Deny) -> Result<(), Failure> {
    let longest = rule.longest.map(|time| time.as_secs_f64());
    Link::to(&rule.name)?.ask(json!({"do": "deny", "rule": rule.rule, "for": longest}))?;
    Ok(())
}

/// Takes back a rule.
///
/// # Errors
/// When there is no such rule.
pub fn revoke(rule: &Rule) -> Result<(), Failure> {
    Link::to(&rule.name)?.ask(json!({"do": "revoke", "rule": rule.rule}))?;
    Ok(())
}

/// Prints the rules of a session.
///
/// # Errors
/// When it does not exist.
pub fn show(policy: &Policy) -> Result<(), Failure> {
    let answer = Link::to(&policy.name)?.ask(json!({"do": "policy"}))?;
    if policy.json {
        return failure::print(&text::json(&format!("{answer}\n")));
    }
    let mut shown = String::new();
    for rule in answer["rules"].as_array().into_iter().flatten() {
        let verb = if rule["allow"].as_bool() == Some(true) { "allow" } else { "deny" };
        let once = if rule["once"].as_bool() == Some(true) { ", once" } else { "" };
        let left = rule["seconds"].as_f64().map(|left| format!(", for {left:.0} s more")).unwrap_or_default();
        let _ = writeln!(shown, "{:>4} {verb:<6} {}{once}{left}", rule["number"].to_string(), word(&rule["rule"]));
    }
    for rule in answer["start"].as_array().into_iter().flatten() {
        let _ = writeln!(shown, "   - {:<13} {}", word(&rule["grate"]), word(&rule["option"]));
    }
    failure::print(&shown)
}

fn word(value: &Value) -> String {
    text::shown(value.as_str().unwrap_or_default())
}
