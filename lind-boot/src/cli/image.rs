//! Options of `image`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// The commands on images.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Make an OCI image of a directory, a module, or what a recipe lists (docs/images.md)
    Build(Build),
}

/// Options of `image build`.
#[derive(Args, Debug)]
pub struct Build {
    /// The name of the image, as NAME[:TAG]; the tag is latest unless given
    #[arg(short, long, value_name = "NAME[:TAG]")]
    pub tag: String,
    /// Write an archive that podman, docker and ctr load [default: the last part of NAME, with
    /// .tar]
    #[arg(short, long, value_name = "FILE.tar")]
    pub output: Option<PathBuf>,
    /// Write the layout as a directory instead, which must not exist
    #[arg(long, value_name = "DIR", conflicts_with = "output")]
    pub layout: Option<PathBuf>,
    /// The platform that the image names. For wasi/wasm it also says that it is for runtimes of
    /// WebAssembly
    #[arg(long, value_name = "OS/ARCHITECTURE", default_value = "linux/amd64")]
    pub platform: String,
    /// Make an artifact of the module alone, without files: for runtimes that run WASI
    #[arg(long)]
    pub artifact: bool,
    /// A directory that becomes the root; a module, which becomes the program; an artifact; or a
    /// recipe, a TOML file
    #[arg(value_name = "DIR|MODULE|ARTIFACT|RECIPE")]
    pub source: PathBuf,
}
