//! Parses the requests of front ends to a session from JSON. They come from the user, who gets an
//! exact message for each mistake.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use lind_abi::layout::{Termios, Winsize};
use lind_kernel::cage::signal::Origin;
use lind_kernel::text::shown;
use serde_json::{Value, json};

use super::wire::{self, FILES, SECOND, VERSION};
use crate::amount::Kind;
use crate::cli::sandbox::Amounts;
use crate::sandbox::{Surroundings, limited};

/// The first message of a connection.
pub enum Request {
    /// Run a command.
    Exec(Box<Line>),
    /// List the commands that run.
    List,
    /// Send a signal to one command, or all.
    Signal(u8, Option<u32>),
    /// End the session.
    Stop,
}

/// A command to run.
pub struct Line {
    /// The command with its arguments, behind the words that limit it.
    pub argv: Vec<Vec<u8>>,
    /// The command as it was requested, as text.
    pub shown: String,
    /// Variables that replace the session's or are added to them.
    pub env: Vec<Vec<u8>>,
    /// The directory of the guest to start in.
    pub workdir: Option<PathBuf>,
    /// The working directory of the client on the host.
    pub here: Option<PathBuf>,
    /// Its time limit.
    pub timeout: Option<Duration>,
    /// Whether the client wants a message when it starts.
    pub events: bool,
    /// Its terminal.
    pub terminal: Option<Terminal>,
    /// The wishes of a client of the second version.
    pub kept: Option<Kept>,
}

/// A command whose output the session reads and keeps.
pub struct Kept {
    /// Which of the descriptors 0, 1 and 2 are pipes of the session.
    pub pipes: [bool; FILES],
    /// Whether the client is going to send input.
    pub input: bool,
    /// Whether the command goes on without the client.
    pub detached: bool,
    /// The bytes of output to keep.
    pub keep: Option<usize>,
    /// The most bytes of output to take.
    pub most: Option<u64>,
}

/// A terminal for a command.
pub struct Terminal {
    /// Which of the descriptors 0, 1 and 2 are the terminal.
    pub files: [bool; FILES],
    /// Its size.
    pub size: Winsize,
    /// Its settings, instead of the host's.
    pub settings: Option<Termios>,
}

/// The messages of a client while its command runs.
pub enum Meanwhile {
    /// A signal for it.
    Signal(u8, Origin),
    /// Text typed at its terminal.
    Input(Vec<u8>),
    /// The terminal's size.
    Size(Winsize),
}

impl Request {
    /// Parses a message.
    ///
    /// # Errors
    /// A mistake in the message.
    pub fn read(message: &Value) -> Result<Request> {
        let version = message["lind"].as_u64().unwrap_or(0);
        ensure!(
            version == VERSION,
            "this session speaks version {VERSION} and version {SECOND} of the protocol, and not {version}"
        );
        match message["do"].as_str() {
            Some("exec") => Ok(Request::Exec(Box::new(Line::read(message)?))),
            Some("list") => Ok(Request::List),
            Some("stop") => Ok(Request::Stop),
            Some("signal") => {
                let id = message["id"].as_u64().map(u32::try_from).transpose().context("id")?;
                Ok(Request::Signal(number(message)?, id))
            }
            _ => bail!("do: expected exec, list, signal or stop"),
        }
    }
}

impl Meanwhile {
    /// Parses a message.
    ///
    /// # Errors
    /// A mistake in the message.
    pub fn read(message: &Value) -> Result<Meanwhile> {
        if !message["input"].is_null() {
            return wire::bytes(&message["input"])
                .map(Meanwhile::Input)
                .context("input: expected text, or a list of bytes");
        }
        if !message["resize"].is_null() {
            return size(&message["resize"]).context("resize").map(Meanwhile::Size);
        }
        let origin = if message["terminal"].as_bool() == Some(true) { Origin::Terminal } else { Origin::Process };
        Ok(Meanwhile::Signal(number(message)?, origin))
    }
}

/// A list of some of 0, 1 and 2.
fn files(value: &Value) -> Result<[bool; FILES]> {
    let mut files = [false; FILES];
    for number in value.as_array().context("files: expected a list of 0, 1 and 2")? {
        let place = number.as_u64().and_then(|number| files.get_mut(usize::try_from(number).ok()?));
        *place.context("files: expected 0, 1 or 2")? = true;
    }
    Ok(files)
}

/// `[rows, columns]`
pub fn size(value: &Value) -> Result<Winsize> {
    let number = |at: usize| value[at].as_u64().and_then(|number| u16::try_from(number).ok());
    let (row, col) = number(0).zip(number(1)).context("expected [rows, columns]")?;
    Ok(Winsize { row, col, xpixel: 0, ypixel: 0 })
}

impl Terminal {
    fn read(value: &Value) -> Result<Option<Terminal>> {
        if value.is_null() {
            return Ok(None);
        }
        let files = files(&value["files"])?;
        let settings = Some(&value["settings"]).filter(|settings| !settings.is_null());
        let settings = settings.map(|settings| read_settings(settings).context("settings")).transpose()?;
        Ok(Some(Terminal { files, size: size(&value["size"]).context("size")?, settings }))
    }
}

/// Terminal settings in a message: input, output, control and local modes, and the control
/// characters.
pub fn settings(settings: &Termios) -> Value {
    let Termios { iflag, oflag, cflag, lflag, cc, .. } = settings;
    json!([iflag, oflag, cflag, lflag, cc])
}

fn read_settings(value: &Value) -> Result<Termios> {
    let mode = |at: usize| value[at].as_u64().and_then(|mode| u32::try_from(mode).ok()).context("expected a mode");
    let cc = wire::bytes(&value[4]).and_then(|cc| cc.try_into().ok()).context("expected 19 characters")?;
    Ok(Termios { iflag: mode(0)?, oflag: mode(1)?, cflag: mode(2)?, lflag: mode(3)?, line: 0, cc })
}

/// The signal of a message.
///
/// # Errors
/// When it is not a number of one.
pub fn number(message: &Value) -> Result<u8> {
    let number = message["signal"].as_u64().and_then(|number| u8::try_from(number).ok());
    number.filter(|number| (1..=64).contains(number)).ok_or_else(|| anyhow!("signal: expected a number from 1 to 64"))
}

impl Line {
    /// The session's environment, with the variables of the command.
    pub fn environment(&self, session: &Surroundings) -> Vec<Vec<u8>> {
        let name = |text: &[u8]| text.split(|&byte| byte == b'=').next().unwrap_or_default().to_vec();
        let mut all: Vec<Vec<u8>> = session.env.iter().map(|text| text.as_bytes().to_vec()).collect();
        for text in &self.env {
            let of_text = name(text);
            all.retain(|old| name(old) != of_text);
            all.push(text.clone());
        }
        all
    }

    fn read(message: &Value) -> Result<Line> {
        let own = words(&message["argv"]).context("argv")?;
        ensure!(own.first().is_some_and(|name| !name.is_empty()), "argv: expected the name of a command");
        let path = |key: &str| {
            let value = Some(&message[key]).filter(|value| !value.is_null());
            value.map(|value| word(value).map(path).with_context(|| key.to_owned())).transpose()
        };
        let workdir = path("workdir")?;
        ensure!(
            workdir.as_ref().is_none_or(|path| path.has_root()),
            "-w: must be a path of the guest, which begins with /"
        );
        let seconds = message["timeout"].as_f64();
        let timeout = seconds.map(Duration::try_from_secs_f64).transpose().context("timeout")?;
        let shown: Vec<_> = own.iter().map(shown).collect();
        let limits = limited(&amounts(&message["limits"])?).into_iter().map(OsString::into_encoded_bytes);
        Ok(Line {
            shown: shown.join(" "),
            argv: limits.chain(own).collect(),
            env: words(&message["env"]).context("env")?,
            workdir,
            here: path("here")?,
            timeout,
            events: message["events"].as_bool() == Some(true),
            terminal: Terminal::read(&message["terminal"]).context("terminal")?,
            kept: None,
        })
    }

    /// Parses an `exec` of the second version.
    ///
    /// # Errors
    /// A mistake in the message.
    pub fn second(message: &Value) -> Result<Line> {
        let mut line = Line::read(message)?;
        let sent = if message["files"].is_null() { [false; FILES] } else { files(&message["files"])? };
        let at_terminal = line.terminal.as_ref().map_or([false; FILES], |terminal| terminal.files);
        let mut pipes = [true; FILES];
        for ((pipe, sent), at_terminal) in pipes.iter_mut().zip(sent).zip(at_terminal) {
            ensure!(!(sent && at_terminal), "files: a descriptor of the terminal cannot be sent");
            *pipe = !sent && !at_terminal;
        }
        let count = |key: &str| {
            let value = Some(&message[key]).filter(|value| !value.is_null());
            value.map(|value| value.as_u64().with_context(|| format!("{key}: expected a number of bytes"))).transpose()
        };
        line.events = true;
        line.kept = Some(Kept {
            pipes,
            input: message["stdin"].as_bool() == Some(true),
            detached: message["detach"].as_bool() == Some(true),
            keep: count("keep")?.map(|keep| usize::try_from(keep).unwrap_or(usize::MAX)),
            most: count("max_output")?,
        });
        Ok(line)
    }
}

fn path(bytes: Vec<u8>) -> PathBuf {
    use std::os::unix::ffi::OsStringExt;
    PathBuf::from(OsString::from_vec(bytes))
}

fn word(value: &Value) -> Result<Vec<u8>> {
    let bytes = wire::bytes(value).context("expected text, or a list of bytes")?;
    ensure!(!bytes.contains(&0), "has a NUL byte");
    Ok(bytes)
}

/// A list of words. A missing list is an empty one.
fn words(value: &Value) -> Result<Vec<Vec<u8>>> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(all) => all.iter().map(word).collect(),
        _ => bail!("expected a list"),
    }
}

/// The limits of a command. An unknown limit is refused, since it would not hold.
fn amounts(value: &Value) -> Result<Amounts> {
    let mut amounts = Amounts::default();
    for (limit, amount) in value.as_object().into_iter().flatten() {
        let mut all = amounts.each();
        let names = all.each_ref().map(|(name, _)| *name).join(", ");
        let place = all.iter_mut().find(|(name, _)| name == limit);
        let (_, place) = place.with_context(|| format!("limits: unknown limit {limit}; the limits are {names}"))?;
        let amount = amount.as_str().map_or_else(|| amount.to_string(), str::to_owned);
        let amount = Kind::of(limit).parse(&amount);
        **place = Some(amount.map_err(|wrong| anyhow!("limits: {limit}: {wrong}"))?);
    }
    Ok(amounts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(message: &Value) -> Result<Line> {
        match Request::read(message)? {
            Request::Exec(line) => Ok(*line),
            _ => bail!("it is another request"),
        }
    }

    #[test]
    fn commands_are_read_whole() {
        let message = json!({
            "lind": 1, "do": "exec", "argv": ["a", [255]], "env": ["X=1"], "here": "/p", "timeout": 1.5,
            "limits": {"cpu": "2s", "disk": 5},
        });
        let line = line(&message).unwrap();
        let words =
            ["resource_grate", "--cpu=2000000000", "--write-bytes=file=5", "a"].map(|word| word.as_bytes().to_vec());
        assert_eq!(line.argv, [&words[..], &[vec![255]]].concat());
        assert_eq!((line.here, line.workdir), (Some("/p".into()), None));
        assert_eq!(line.timeout, Some(Duration::from_millis(1500)));
    }

    #[test]
    fn terminals_are_read() {
        let before = Termios { iflag: 1, oflag: 2, cflag: 3, lflag: 4, line: 0, cc: [7; 19] };
        let message = json!({"lind": 1, "do": "exec", "argv": ["a"],
            "terminal": {"files": [0, 2], "size": [24, 80], "settings": settings(&before)}});
        let terminal = line(&message).unwrap().terminal.unwrap();
        let Termios { iflag, oflag, cflag, lflag, cc, .. } = terminal.settings.unwrap();
        assert_eq!((iflag, oflag, cflag, lflag, cc), (1, 2, 3, 4, [7; 19]));
        assert_eq!((terminal.files, terminal.size.row, terminal.size.col), ([true, false, true], 24, 80));
        let read = |message| Meanwhile::read(&message);
        assert!(matches!(read(json!({"input": "a"})), Ok(Meanwhile::Input(bytes)) if bytes == b"a"));
        assert!(matches!(read(json!({"resize": [3, 4]})), Ok(Meanwhile::Size(size)) if (size.row, size.col) == (3, 4)));
        assert!(matches!(read(json!({"signal": 2, "terminal": true})), Ok(Meanwhile::Signal(2, Origin::Terminal))));
        for wrong in [json!({"input": 1}), json!({"resize": [1]}), json!({"resize": "x"}), json!({})] {
            assert!(read(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (message, part) in [
            (json!({"do": "list"}), "version 1"),
            (json!({"lind": 3, "do": "list"}), "not 3"),
            (json!({"lind": 1, "do": "dance"}), "expected exec"),
            (json!({"lind": 1, "do": "exec", "argv": []}), "expected the name of a command"),
            (json!({"lind": 1, "do": "exec", "argv": [""]}), "expected the name of a command"),
            (json!({"lind": 1, "do": "exec", "argv": ["a\u{0}b"]}), "NUL"),
            (json!({"lind": 1, "do": "exec", "argv": ["a"], "env": "x"}), "list"),
            (json!({"lind": 1, "do": "exec", "argv": ["a"], "workdir": "x"}), "begins with /"),
            (json!({"lind": 1, "do": "exec", "argv": ["a"], "timeout": -1.0}), "timeout"),
            (json!({"lind": 1, "do": "exec", "argv": ["a"], "limits": {"x": 1}}), "unknown limit x"),
            (json!({"lind": 1, "do": "exec", "argv": ["a"], "terminal": {"size": [1, 2]}}), "files"),
            (json!({"lind": 1, "do": "exec", "argv": ["a"], "terminal": {"files": [3], "size": [1, 2]}}), "0, 1 or 2"),
            (json!({"lind": 1, "do": "exec", "argv": ["a"], "terminal": {"files": [], "size": [1, 70000]}}), "size"),
            (
                json!({"lind": 1, "do": "exec", "argv": ["a"], "terminal": {"files": [], "size": [1, 2], "settings": []}}),
                "settings",
            ),
            (json!({"lind": 1, "do": "signal", "signal": 0}), "1 to 64"),
            (json!({"lind": 1, "do": "signal", "signal": 9, "id": 5_000_000_000_u64}), "id"),
        ] {
            let error = format!("{:#}", Request::read(&message).err().unwrap());
            assert!(error.contains(part), "{message}: {error}");
        }
    }
}
