//! Options of `import-settings`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Options of `import-settings`.
#[derive(Args, Debug)]
pub struct ImportSettings {
    /// The settings: settings.json of Claude Code, a configuration of srt, or config.toml of Codex
    pub file: PathBuf,
    /// The format of FILE [default: what its keys say]
    #[arg(long, value_name = "FORMAT")]
    pub format: Option<Format>,
    /// Write the policy to this new file, and not to standard output. NAME is a file in
    /// ~/.config/lind/policies
    #[arg(short, long, value_name = "NAME|FILE")]
    pub output: Option<PathBuf>,
}

/// The programs whose settings can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Format {
    /// settings.json of Claude Code
    Claude,
    /// a configuration of the Anthropic Sandbox Runtime (srt)
    Srt,
    /// config.toml of Codex
    Codex,
}

impl Format {
    /// The word of the option.
    pub fn word(self) -> &'static str {
        match self {
            Format::Claude => "claude",
            Format::Srt => "srt",
            Format::Codex => "codex",
        }
    }
}
