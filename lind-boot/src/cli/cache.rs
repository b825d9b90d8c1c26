//! Options of `cache` and `warm`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The commands on the cache.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// List the files of the cache: sizes, and when they were last used
    Ls(Ls),
    /// Remove files that this version cannot use, or more
    Clean(Clean),
}

/// Options of `cache ls`.
#[derive(Args, Debug)]
pub struct Ls {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `cache clean`.
#[derive(Args, Debug)]
pub struct Clean {
    /// Remove all files
    #[arg(long, conflicts_with = "older")]
    pub all: bool,
    /// Remove files, too, that were not used for this many days
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=36500))]
    pub older: Option<u32>,
}

/// Options of `warm`.
#[derive(Args, Debug)]
pub struct Warm {
    /// Look for programs named without a slash in the root DIR [default: $LIND_ROOT, or the image
    /// that came with lind-boot]
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Write the code into DIR instead of the cache, for any processor of this kind: for a package
    /// that brings its programs compiled (docs/install.md)
    #[arg(long, value_name = "DIR")]
    pub deliver: Option<PathBuf>,
    /// Trust the files HASH.packed in PACKED, too: what `zstd -19 --long=27` made of HASH.code in
    /// DIR
    #[arg(long, value_name = "PACKED", requires = "deliver")]
    pub packed: Option<PathBuf>,
    /// The lind-boot of that package, a file: it is made to trust the code in DIR, and no other
    /// code there
    #[arg(long, value_name = "LIND-BOOT", requires = "deliver")]
    pub seal: Option<PathBuf>,
    /// Files, directories with programs, or names of programs of the root
    #[arg(required = true, value_name = "PROGRAM|DIR")]
    pub programs: Vec<PathBuf>,
}
