//! Parses the requests of front ends to a session from JSON. They come from the user, who gets an
//! exact message for each mistake.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use lind_abi::layout::{Termios, Winsize};
use lind_kernel::text::shown;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error};
use serde_json::{Map, Value, json};

use super::wire::{FILES, SECOND, VERSION, Word};
use crate::amount::Kind;
use crate::cli::sandbox::Amounts;
use crate::plan::container::Identity;
use crate::sandbox::{Surroundings, limited};

/// The first message of a connection.
pub enum Request {
    /// Run a command.
    Exec(Box<Line>),
    /// List the commands that run.
    List,
    /// Send a signal to one command, or all.
    Signal(ToSignal),
    /// End the session.
    Stop,
}

/// A signal for one command, or for all.
#[derive(Deserialize)]
pub struct ToSignal {
    /// The signal.
    #[serde(deserialize_with = "number")]
    pub signal: u8,
    /// The number of the command.
    pub id: Option<u32>,
}

/// A command to run.
#[derive(Clone)]
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
    /// The user that it runs as, in a container.
    pub identity: Option<Identity>,
    /// The wishes of a client of the second version.
    pub kept: Option<Kept>,
}

/// A command whose output the session reads and keeps.
#[derive(Clone)]
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

/// The keys of an `exec`. Those from `stdin` on are of the second version.
#[derive(Deserialize, Default)]
#[serde(default)]
struct Exec {
    argv: Vec<Argument>,
    env: Vec<Argument>,
    workdir: Option<Argument>,
    here: Option<Argument>,
    timeout: Option<f64>,
    limits: Map<String, Value>,
    events: bool,
    terminal: Option<Terminal>,
    #[serde(rename = "as")]
    identity: Option<Identity>,
    stdin: bool,
    #[serde(deserialize_with = "files")]
    files: [bool; FILES],
    detach: bool,
    keep: Option<u64>,
    max_output: Option<u64>,
    #[serde(flatten)]
    unknown: Map<String, Value>,
}

/// A terminal for a command.
#[derive(Deserialize, Clone)]
pub struct Terminal {
    /// Which of the descriptors 0, 1 and 2 are the terminal.
    #[serde(deserialize_with = "files")]
    pub files: [bool; FILES],
    /// Its size.
    #[serde(deserialize_with = "size")]
    pub size: Winsize,
    /// Its settings, instead of the host's.
    #[serde(default, deserialize_with = "read_settings")]
    pub settings: Option<Termios>,
}

/// The messages of a client while its command runs.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected input, resize or signal")]
pub enum Meanwhile {
    /// Text typed at its terminal.
    Input {
        /// The text.
        input: Word,
    },
    /// The terminal has another size.
    Resize {
        /// The size.
        #[serde(deserialize_with = "size")]
        resize: Winsize,
    },
    /// A signal for it.
    Signal {
        /// The signal.
        #[serde(deserialize_with = "number")]
        signal: u8,
        /// Whether it goes to the processes in front on the terminal.
        #[serde(default)]
        terminal: bool,
    },
}

/// A word of a command line, an environment or a path: it has no NUL byte.
#[derive(Deserialize)]
#[serde(try_from = "Word")]
struct Argument(Vec<u8>);

impl TryFrom<Word> for Argument {
    type Error = &'static str;

    fn try_from(Word(bytes): Word) -> Result<Argument, &'static str> {
        if bytes.contains(&0) { Err("has a NUL byte") } else { Ok(Argument(bytes)) }
    }
}

impl From<Argument> for PathBuf {
    fn from(Argument(bytes): Argument) -> PathBuf {
        OsString::from_vec(bytes).into()
    }
}

/// Reads the keys of a message. A key whose value is null counts as missing.
fn parse<T: DeserializeOwned>(message: &Value) -> Result<T> {
    let mut message = message.clone();
    message.as_object_mut().into_iter().for_each(|keys| keys.retain(|_, value| !value.is_null()));
    Ok(serde_path_to_error::deserialize(message)?)
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
            Some("exec") => Ok(Request::Exec(Box::new(parse::<Exec>(message)?.line()?))),
            Some("list") => Ok(Request::List),
            Some("stop") => Ok(Request::Stop),
            Some("signal") => Ok(Request::Signal(parse(message)?)),
            _ => bail!("do: expected exec, list, signal or stop"),
        }
    }
}

/// A list of some of 0, 1 and 2.
fn files<'de, D: Deserializer<'de>>(from: D) -> Result<[bool; FILES], D::Error> {
    let mut files = [false; FILES];
    for number in Vec::<usize>::deserialize(from)? {
        *files.get_mut(number).ok_or_else(|| D::Error::custom("expected 0, 1 or 2"))? = true;
    }
    Ok(files)
}

/// `[rows, columns]`
pub fn size<'de, D: Deserializer<'de>>(from: D) -> Result<Winsize, D::Error> {
    let [row, col] = Deserialize::deserialize(from)?;
    Ok(Winsize { row, col, xpixel: 0, ypixel: 0 })
}

/// Terminal settings in a message: input, output, control and local modes, and the control
/// characters.
pub fn settings(settings: &Termios) -> Value {
    let Termios { iflag, oflag, cflag, lflag, cc, .. } = settings;
    json!([iflag, oflag, cflag, lflag, cc])
}

fn read_settings<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Termios>, D::Error> {
    let Some((iflag, oflag, cflag, lflag, Word(cc))) = Deserialize::deserialize(from)? else { return Ok(None) };
    let cc = cc.try_into().map_err(|_| D::Error::custom("expected 19 control characters"))?;
    Ok(Some(Termios { iflag, oflag, cflag, lflag, line: 0, cc }))
}

/// The number of a signal.
pub fn number<'de, D: Deserializer<'de>>(from: D) -> Result<u8, D::Error> {
    let number = u8::deserialize(from).ok().filter(|number| (1..=64).contains(number));
    number.ok_or_else(|| D::Error::custom("expected a number from 1 to 64"))
}

impl Exec {
    fn line(self) -> Result<Line> {
        let own: Vec<_> = self.argv.into_iter().map(|Argument(bytes)| bytes).collect();
        ensure!(own.first().is_some_and(|name| !name.is_empty()), "argv: expected the name of a command");
        let workdir = self.workdir.map(PathBuf::from);
        ensure!(
            workdir.as_ref().is_none_or(|path| !path.as_os_str().is_empty()),
            "workdir: expected a directory of the guest, and not an empty name"
        );
        let shown: Vec<_> = own.iter().map(shown).collect();
        let limits = limited(&amounts(&self.limits)?).into_iter().map(OsString::into_encoded_bytes);
        Ok(Line {
            shown: shown.join(" "),
            argv: limits.chain(own).collect(),
            env: self.env.into_iter().map(|Argument(bytes)| bytes).collect(),
            workdir,
            here: self.here.map(PathBuf::from),
            timeout: self.timeout.map(Duration::try_from_secs_f64).transpose().context("timeout")?,
            events: self.events,
            terminal: self.terminal,
            identity: self.identity,
            kept: None,
        })
    }
}

impl Line {
    /// Parses an `exec` of the second version. It has no unknown key: a limit that this session
    /// does not know would not hold.
    ///
    /// # Errors
    /// A mistake in the message.
    pub fn second(message: &Value) -> Result<Line> {
        let exec: Exec = parse(message)?;
        let known = |key: &str| ["lind", "do", "bytes"].contains(&key);
        if let Some(key) = exec.unknown.keys().find(|key| !known(key)) {
            bail!("{}: this session does not know this key of `exec`", shown(key));
        }
        let at_terminal = exec.terminal.as_ref().map_or([false; FILES], |terminal| terminal.files);
        let mut pipes = [true; FILES];
        for ((pipe, sent), at_terminal) in pipes.iter_mut().zip(exec.files).zip(at_terminal) {
            ensure!(!(sent && at_terminal), "files: a descriptor of the terminal cannot be sent");
            *pipe = !sent && !at_terminal;
        }
        let kept = Kept {
            pipes,
            input: exec.stdin,
            detached: exec.detach,
            keep: exec.keep.map(|keep| usize::try_from(keep).unwrap_or(usize::MAX)),
            most: exec.max_output,
        };
        Ok(Line { events: true, kept: Some(kept), ..exec.line()? })
    }

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
}

/// The limits of a command. An unknown limit is refused, since it would not hold.
fn amounts(limits: &Map<String, Value>) -> Result<Amounts> {
    let mut amounts = Amounts::default();
    for (limit, amount) in limits {
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
    fn unknown_keys_are_refused_in_the_second_version_alone() {
        let message =
            |version| json!({"lind": version, "do": "exec", "argv": ["a"], "max_outputs": 5, "bytes": 0, "here": null});
        assert!(line(&message(1)).is_ok());
        let error = Line::second(&message(2)).err().unwrap().to_string();
        assert!(error.starts_with("max_outputs: "), "{error}");
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
        let read = |message: Value| Meanwhile::deserialize(message);
        assert!(matches!(read(json!({"input": "a"})), Ok(Meanwhile::Input { input: Word(bytes) }) if bytes == b"a"));
        assert!(
            matches!(read(json!({"resize": [3, 4]})), Ok(Meanwhile::Resize { resize }) if (resize.row, resize.col) == (3, 4))
        );
        assert!(matches!(
            read(json!({"signal": 2, "terminal": true})),
            Ok(Meanwhile::Signal { signal: 2, terminal: true })
        ));
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
            (json!({"lind": 1, "do": "exec", "argv": ["a\u{0}b"]}), "argv[0]: has a NUL byte"),
            (
                json!({"lind": 1, "do": "exec", "argv": ["a"], "env": "x"}),
                "env: invalid type: string \"x\", expected a sequence",
            ),
            (json!({"lind": 1, "do": "exec", "argv": ["a"], "workdir": ""}), "not an empty name"),
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
