//! The log: lines of JSON or text in the file of `--log`. Engines show the last error in it to
//! their users.

use std::fs::File;
use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;

use crate::cli::{Format, Global};

/// The log.
pub struct Log {
    file: Option<File>,
    format: Format,
}

impl Log {
    /// Opens the log of the options. A log that cannot be opened is standard error alone.
    pub fn open(global: &Global) -> Log {
        let path = global.log.as_ref().filter(|path| !path.as_os_str().is_empty());
        let file = path.and_then(|path| File::options().append(true).create(true).open(path).ok());
        Log { file, format: global.log_format }
    }

    /// Notes something that has no effect, or another one than expected.
    pub fn warn(&self, message: &str) {
        match &self.file {
            Some(_) => self.note("warning", message),
            None => print(&format!("{}\n", self.line("warning", message))),
        }
    }

    /// Reports the failure of the command.
    pub fn fail(&self, message: &str) {
        self.note("error", message);
        print(&format!("{message}\n"));
    }

    fn note(&self, level: &str, message: &str) {
        if let Some(mut file) = self.file.as_ref() {
            // One write each: others may append to the same file.
            let _ = file.write_all(format!("{}\n", self.line(level, message)).as_bytes());
        }
    }

    fn line(&self, level: &str, message: &str) -> String {
        let time = time(SystemTime::now());
        match self.format {
            Format::Json => json!({"level": level, "msg": message, "time": time}).to_string(),
            Format::Text => format!("time=\"{time}\" level={level} msg={message:?}"),
        }
    }
}

fn print(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// The seconds of a day.
const DAY: u64 = 24 * 60 * 60;

/// A time as in RFC 3339.
pub fn time(at: SystemTime) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (days, second) = (since.as_secs() / DAY, since.as_secs() % DAY);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:09}Z", since.subsec_nanos())
}

/// Year, month and day of the day with this number, counted from 1970.
fn date(mut days: u64) -> (u64, u64, u64) {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    loop {
        let length = if leap(year) { 366 } else { 365 };
        if days < length {
            break;
        }
        days -= length;
        year += 1;
    }
    let february = if leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_are_of_rfc_3339() {
        let of = |seconds: u64| time(UNIX_EPOCH + Duration::new(seconds, 5));
        assert_eq!(of(0), "1970-01-01T00:00:00.000000005Z");
        assert_eq!(of(951_782_400), "2000-02-29T00:00:00.000000005Z");
        assert_eq!(of(1_735_689_599), "2024-12-31T23:59:59.000000005Z");
    }

    #[test]
    fn errors_are_lines_of_json() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let global = Global { log: Some(path.clone()), log_format: Format::Json, ..Global::default() };
        let log = Log::open(&global);
        log.warn("a");
        log.fail("b \"c\"");
        let text = std::fs::read_to_string(path).unwrap();
        let last: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        assert_eq!((&last["level"], &last["msg"]), (&json!("error"), &json!("b \"c\"")));
    }
}
