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

/// Options of `session questions`.
#[derive(Args, Debug)]
pub struct Questions {
    /// The name of the session, or the name that `run --ask` prints
    pub name: String,
    /// Go on, and ask at a terminal
    #[arg(short, long)]
    pub follow: bool,
    /// Print JSON, an object on a line
    #[arg(long)]
    pub json: bool,
}

/// Options of `session answer`.
#[derive(Args, Debug)]
pub struct Answer {
    /// The name of the session, or the name that `run --ask` prints
    pub name: String,
    /// The number of the question
    pub number: u64,
    /// Allow the call once; also later calls of this program; also those of the session; or no
    #[arg(value_parser = ["once", "program", "session", "no"])]
    pub answer: String,
}
