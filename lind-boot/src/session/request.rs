//! What front ends ask of a session, read from JSON. Whoever asks is the user; what is wrong is said.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use lind_kernel::cage::signal::Origin;
use serde_json::Value;

use super::wire::{self, VERSION};
use crate::sandbox::{Amounts, limited};

/// The first message of a connection.
#[derive(Debug)]
pub enum Request {
    /// Run a command.
    Exec(Box<Line>),
    /// Say what runs.
    List,
    /// Send a signal to one command, or all.
    Signal(u8, Option<u32>),
    /// End.
    Stop,
}

/// A command to run.
#[derive(Debug)]
pub struct Line {
    /// The command with its arguments, behind what limits it.
    pub argv: Vec<Vec<u8>>,
    /// The command as it was asked for, for people.
    pub shown: String,
    /// Variables, instead of the session's or besides.
    pub env: Vec<Vec<u8>>,
    /// A directory of the guest's to start in.
    pub workdir: Option<PathBuf>,
    /// The directory of the host where it was asked for.
    pub here: Option<PathBuf>,
    /// How long it may take.
    pub timeout: Option<Duration>,
    /// Whether its start is of interest.
    pub events: bool,
}

impl Request {
    /// Reads one.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(message: &Value) -> Result<Request> {
        let version = message["lind"].as_u64().unwrap_or(0);
        ensure!(version == VERSION, "this session speaks version {VERSION} of the protocol, and not {version}");
        match message["do"].as_str() {
            Some("exec") => Ok(Request::Exec(Box::new(Line::read(message)?))),
            Some("list") => Ok(Request::List),
            Some("stop") => Ok(Request::Stop),
            Some("signal") => {
                let id = message["id"].as_u64().map(u32::try_from).transpose().context("id")?;
                Ok(Request::Signal(number(message)?, id))
            }
            _ => bail!("do: there are exec, list, signal and stop"),
        }
    }
}

/// A signal for the command that a connection has started.
///
/// # Errors
/// What is no such message.
pub fn signal(message: &Value) -> Result<(u8, Origin)> {
    let origin = if message["terminal"].as_bool() == Some(true) { Origin::Terminal } else { Origin::Process };
    Ok((number(message)?, origin))
}

fn number(message: &Value) -> Result<u8> {
    let number = message["signal"].as_u64().and_then(|number| u8::try_from(number).ok());
    number.filter(|number| (1..=64).contains(number)).ok_or_else(|| anyhow!("signal: a number from 1 to 64"))
}

impl Line {
    fn read(message: &Value) -> Result<Line> {
        let own = words(&message["argv"]).context("argv")?;
        ensure!(own.first().is_some_and(|name| !name.is_empty()), "argv: no command named");
        let path = |key: &str| {
            let value = Some(&message[key]).filter(|value| !value.is_null());
            value.map(|value| word(value).map(path).with_context(|| key.to_owned())).transpose()
        };
        let workdir = path("workdir")?;
        ensure!(workdir.as_ref().is_none_or(|path| path.has_root()), "-w: a path of the guest begins with /");
        let seconds = message["timeout"].as_f64();
        let timeout = seconds.map(Duration::try_from_secs_f64).transpose().context("timeout")?;
        let shown: Vec<_> = own.iter().map(|word| String::from_utf8_lossy(word).escape_debug().to_string()).collect();
        let limits = limited(&amounts(&message["limits"])?).into_iter().map(String::into_bytes);
        Ok(Line {
            shown: shown.join(" "),
            argv: limits.chain(own).collect(),
            env: words(&message["env"]).context("env")?,
            workdir,
            here: path("here")?,
            timeout,
            events: message["events"].as_bool() == Some(true),
        })
    }
}

fn path(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

fn word(value: &Value) -> Result<Vec<u8>> {
    let bytes = wire::bytes(value).context("text, or a list of bytes, is expected")?;
    ensure!(!bytes.contains(&0), "has a NUL in it");
    Ok(bytes)
}

/// A list of words; none is an empty one.
fn words(value: &Value) -> Result<Vec<Vec<u8>>> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(all) => all.iter().map(word).collect(),
        _ => bail!("a list is expected"),
    }
}

fn amounts(value: &Value) -> Result<Amounts> {
    let mut amounts = Amounts::default();
    for (limit, amount) in value.as_object().into_iter().flatten() {
        let place = match limit.as_str() {
            "memory" => &mut amounts.memory,
            "cpu" => &mut amounts.cpu,
            "cages" => &mut amounts.cages,
            "files" => &mut amounts.files,
            "disk" => &mut amounts.disk,
            _ => bail!("limits: there is no {limit}; there are memory, cpu, cages, files and disk"),
        };
        *place = Some(amount.as_str().map_or_else(|| amount.to_string(), str::to_owned));
    }
    Ok(amounts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn line(message: &Value) -> Result<Line> {
        match Request::read(message)? {
            Request::Exec(line) => Ok(*line),
            other => bail!("{other:?}"),
        }
    }

    #[test]
    fn commands_are_read_whole() {
        let message = json!({
            "lind": 1, "do": "exec", "argv": ["a", [255]], "env": ["X=1"], "here": "/p", "timeout": 1.5,
            "limits": {"cpu": "2s", "disk": 5},
        });
        let line = line(&message).unwrap();
        let words = ["resource_grate", "--cpu=2s", "--write-bytes=file=5", "a"].map(|word| word.as_bytes().to_vec());
        assert_eq!(line.argv, [&words[..], &[vec![255]]].concat());
        assert_eq!((line.here, line.workdir), (Some("/p".into()), None));
        assert_eq!(line.timeout, Some(Duration::from_millis(1500)));
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (message, part) in [
            (json!({"do": "list"}), "version 1"),
            (json!({"lind": 2, "do": "list"}), "not 2"),
            (json!({"lind": 1, "do": "dance"}), "there are exec"),
            (json!({"lind": 1, "do": "exec", "argv": []}), "no command"),
            (json!({"lind": 1, "do": "exec", "argv": [""]}), "no command"),
            (json!({"lind": 1, "do": "exec", "argv": ["a\u{0}b"]}), "NUL"),
            (json!({"lind": 1, "do": "exec", "argv": ["a"], "env": "x"}), "list"),
            (json!({"lind": 1, "do": "exec", "argv": ["a"], "workdir": "x"}), "begins with /"),
            (json!({"lind": 1, "do": "exec", "argv": ["a"], "timeout": -1.0}), "timeout"),
            (json!({"lind": 1, "do": "exec", "argv": ["a"], "limits": {"x": 1}}), "no x"),
            (json!({"lind": 1, "do": "signal", "signal": 0}), "1 to 64"),
            (json!({"lind": 1, "do": "signal", "signal": 9, "id": 5_000_000_000_u64}), "id"),
        ] {
            let error = format!("{:#}", Request::read(&message).unwrap_err());
            assert!(error.contains(part), "{message}: {error}");
        }
    }
}
