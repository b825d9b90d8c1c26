//! Options of the commands that change the rules of a session.

use std::time::Duration;

use clap::Args;

use super::sandbox::duration;

/// Options of `session allow`.
#[derive(Args, Debug)]
pub struct Allow {
    /// The name of the session
    pub name: String,
    /// The rule: HOST[:PORT] as for --allow of `run`
    pub rule: String,
    /// Let it hold for one use
    #[arg(long)]
    pub once: bool,
    /// Take it back after this time, such as 30s or 10m
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub longest: Option<Duration>,
}

/// Options of `session deny`.
#[derive(Args, Debug)]
pub struct Deny {
    /// The name of the session
    pub name: String,
    /// The rule, as for `session allow`
    pub rule: String,
    /// Take it back after this time, such as 30s or 10m
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub longest: Option<Duration>,
}

/// Options of `session revoke`.
#[derive(Args, Debug)]
pub struct Rule {
    /// The name of the session
    pub name: String,
    /// The rule as it was typed, or its number
    pub rule: String,
}

/// Options of `session policy`.
#[derive(Args, Debug)]
pub struct Policy {
    /// The name of the session
    pub name: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}
