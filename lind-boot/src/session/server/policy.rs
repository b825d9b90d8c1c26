//! The rules of a session, which its user changes while commands run.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use serde_json::{Value, json};

use super::Server;
use super::second::is;
use crate::plan::live::{Added, Holds, Live};

/// How long a grate may take to apply rules.
const LONGEST: Duration = Duration::from_secs(5);

impl Server {
    /// Adds a rule. It holds when this returns.
    ///
    /// # Errors
    /// A mistake in the request or in the rule, which changes nothing.
    pub(super) fn add_rule(&mut self, allows: bool, value: &Value) -> Result<Value> {
        let text = value["rule"].as_str().context("rule: expected a text")?;
        let longest = Some(&value["for"]).filter(|time| !time.is_null());
        let longest = longest.map(|time| {
            let seconds = time.as_f64().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            seconds.filter(|time| !time.is_zero()).context("for: expected a number of seconds")
        });
        let longest = longest.transpose()?;
        let once = is(value, "once").then(|| self.kernel.rules.permit_once());
        let mut rules = self.about.surroundings.rules.clone();
        let added = rules.add(allows, text, Holds { once, longest });
        let settled = added.and_then(|(number, grate)| self.settle(rules, &[grate]).map(|()| number));
        if let (Err(_), Some(once)) = (&settled, once) {
            self.kernel.rules.forget(once);
        }
        Ok(json!({"done": true, "number": settled.with_context(|| text.to_owned())?}))
    }

    /// Takes back a rule.
    ///
    /// # Errors
    /// When there is no such rule.
    pub(super) fn revoke_rule(&mut self, value: &Value) -> Result<Value> {
        let text = match &value["rule"] {
            Value::Number(number) => number.to_string(),
            text => text.as_str().context("rule: expected a text or a number")?.to_owned(),
        };
        let mut rules = self.about.surroundings.rules.clone();
        let grates = rules.revoke(&text)?;
        self.settle(rules, &grates)?;
        Ok(json!({"done": true}))
    }

    /// Lets these rules apply, if each of the grates takes them.
    fn settle(&mut self, rules: Live, grates: &[&str]) -> Result<()> {
        for (at, grate) in grates.iter().enumerate() {
            if let Err(wrong) = self.kernel.rules.give(grate, rules.document(grate), LONGEST) {
                // They had the others before, so they take them again.
                let before = &self.about.surroundings.rules;
                for grate in &grates[..=at] {
                    let _ = self.kernel.rules.give(grate, before.document(grate), LONGEST);
                }
                return Err(anyhow!(wrong));
            }
        }
        self.about.surroundings.rules = rules;
        Ok(())
    }

    /// Takes back the rules whose time is over.
    pub(super) fn expire_rules(&mut self) {
        let mut rules = self.about.surroundings.rules.clone();
        let kernel = &self.kernel;
        let grates = rules.expire(Instant::now(), |once| kernel.rules.is_used(once));
        if grates.is_empty() {
            return;
        }
        // A grate that does not answer is gone, and denies all.
        if self.settle(rules.clone(), &grates).is_err() {
            self.about.surroundings.rules = rules;
        }
    }

    /// The rules, those that count most in front.
    pub(super) fn described_rules(&mut self) -> Value {
        self.expire_rules();
        let rules = &self.about.surroundings.rules;
        let start: Vec<_> = rules.of_start().map(|(grate, option)| json!({"grate": grate, "option": option})).collect();
        json!({"rules": rules.added().map(described).collect::<Value>(), "start": start})
    }
}

fn described(added: &Added) -> Value {
    let left = added.until.map(|until| until.saturating_duration_since(Instant::now()).as_secs_f64());
    json!({"number": added.number, "allow": added.allows, "rule": added.text, "once": added.once.is_some(), "seconds": left})
}
