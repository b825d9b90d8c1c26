//! The words of a line as the parser takes them: engines give options that only other runtimes
//! know, and values to flags.

use std::ffi::OsString;

use clap::{Arg, Command, CommandFactory as _};

use super::Line;

/// The options before the command: name, and whether a value follows.
const KNOWN: [(&str, bool); 9] = [
    ("--root", true),
    ("--log", true),
    ("--log-format", true),
    ("--systemd-cgroup", false),
    ("--rootless", false),
    ("--debug", false),
    ("--criu", true),
    ("--help", false),
    ("-h", false),
];

/// The words of a line without unknown options before the command, and with flags as clap has them:
/// other runtimes take --flag=true and --flag=false.
pub fn known(words: &[OsString]) -> (Vec<OsString>, Vec<String>) {
    let (mut kept, mut unknown) = (Vec::new(), Vec::new());
    let whole = Line::command();
    let mut rest = words.iter();
    kept.extend(rest.next().cloned());
    while let Some(word) = rest.next() {
        let text = word.to_str().unwrap_or_default();
        if !text.starts_with('-') {
            kept.push(word.clone());
            kept.extend(of_command(whole.find_subcommand(text), rest.as_slice()));
            break;
        }
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        match KNOWN.iter().find(|(known, _)| *known == name) {
            Some((_, true)) => {
                kept.push(word.clone());
                kept.extend(value.is_none().then(|| rest.next().cloned()).flatten());
            }
            Some((_, false)) => kept.extend(flag(&whole, word)),
            None => {
                unknown.push(name.to_owned());
                // The next word is its value unless it is an option or a command.
                let next = rest.as_slice().first().and_then(|word| word.to_str()).unwrap_or("-");
                if value.is_none() && !next.starts_with('-') && whole.find_subcommand(next).is_none() {
                    rest.next();
                }
            }
        }
    }
    (kept, unknown)
}

/// The words behind the command. The words of a process that is to run are its own.
fn of_command(command: Option<&Command>, words: &[OsString]) -> Vec<OsString> {
    let Some(command) = command else { return words.to_vec() };
    let is_open = command.get_positionals().any(Arg::is_trailing_var_arg_set);
    let mut kept = Vec::new();
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let is_option = word.as_encoded_bytes().starts_with(b"-");
        if word == "--" || (is_open && !is_option) {
            kept.push(word.clone());
            kept.extend(rest.cloned());
            break;
        }
        kept.extend(flag(command, word));
        let takes = word.to_str().and_then(|text| option(command, text)).is_some_and(|arg| !is_flag(arg));
        // The value of an option may look like one.
        kept.extend(takes.then(|| rest.next().cloned()).flatten());
    }
    kept
}

/// A word, without the value of a flag in it. None if that is false.
fn flag(command: &Command, word: &OsString) -> Option<OsString> {
    let split = word.to_str().and_then(|text| text.split_once('='));
    match split {
        Some((name, value @ ("true" | "false"))) if option(command, name).is_some_and(is_flag) => {
            (value == "true").then(|| name.into())
        }
        _ => Some(word.clone()),
    }
}

/// The option that a whole word names.
fn option<'a>(command: &'a Command, text: &str) -> Option<&'a Arg> {
    command.get_arguments().find(|arg| match text.strip_prefix("--") {
        Some(name) => arg.get_long() == Some(name) || arg.get_all_aliases().is_some_and(|all| all.contains(&name)),
        None => arg.get_short().is_some_and(|short| text.strip_prefix('-') == Some(short.encode_utf8(&mut [0; 4]))),
    })
}

fn is_flag(arg: &Arg) -> bool {
    !arg.get_action().takes_values()
}

#[cfg(test)]
mod tests {
    use super::super::tests::line;
    use super::super::{Command, VERSION, asks_for_version, parse};
    use std::ffi::OsString;

    #[test]
    fn flags_have_values_and_words_of_others_stay() {
        let (parsed, unknown) = line(&[
            "--systemd-cgroup=false",
            "--debug=true",
            "exec",
            "--tty=false",
            "-d=true",
            "--env=--detach=false",
            "--cwd",
            "/x=true",
            "id",
            "prog",
            "--color=true",
            "--tty=false",
            "--",
            "-x=true",
        ]);
        let Command::Exec(exec) = parsed.command else { panic!("{parsed:?}") };
        assert!(unknown.is_empty() && !parsed.global.systemd_cgroup && parsed.global.debug && exec.detach && !exec.tty);
        assert_eq!((exec.env, exec.cwd.as_deref()), (vec!["--detach=false".to_owned()], Some("/x=true")));
        assert_eq!(exec.command, ["prog", "--color=true", "--tty=false", "--", "-x=true"]);
        let (parsed, _) = line(&["kill", "--all=true", "id"]);
        assert!(matches!(parsed.command, Command::Kill(kill) if kill.all));
    }

    #[test]
    fn unknown_options_before_the_command_are_noted() {
        let (parsed, unknown) =
            line(&["--cgroup-manager", "systemd", "--new=x", "--flag", "--root", "/r", "state", "id"]);
        assert_eq!(unknown, ["--cgroup-manager", "--new", "--flag"]);
        assert!(matches!(parsed.command, Command::State(_)) && parsed.global.root == Some("/r".into()));
        let words = ["lind-oci", "dance", "id"].map(OsString::from);
        assert!(parse(&words).unwrap_err().use_stderr());
        for (words, asks) in [
            (["--version", ""], true),
            (["-v", ""], true),
            (["--root=/r", "--version"], true),
            (["state", "-v"], false),
        ] {
            let words: Vec<OsString> = ["lind-oci"].iter().chain(&words).map(OsString::from).collect();
            assert_eq!(asks_for_version(&words), asks, "{words:?}");
        }
        assert!(VERSION.contains("\nspec: "));
    }
}
