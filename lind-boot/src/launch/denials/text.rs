//! The texts of denials, for people and for programs.

use std::time::{SystemTime, UNIX_EPOCH};

use lind_kernel::cage::is_grate_name;
use lind_kernel::denial::Denial;
use lind_kernel::text;
use serde_json::{Value, json};

use super::hint::{hint, instead};

/// The most bytes of a name in a line and in an object; its middle is left out beyond that.
const IN_LINE: usize = 400;
const IN_OBJECT: usize = 600;

/// The key by which a line is printed once. A limit of all programs is reached once, whichever
/// program reaches it.
pub fn key(denial: &Denial) -> String {
    if is_limit(denial) {
        return format!("{} {}", denial.grate, denial.rule);
    }
    let what = shortened(&denial.what, IN_OBJECT);
    format!("{} {} {} {} {what}", denial.grate, denial.program, denial.number, denial.rule)
}

/// A line for people: what was denied, what the command can do, and what the person who started it
/// can do.
pub fn line(denial: &Denial) -> String {
    let call = call(denial).map(|call| format!("{call} ")).unwrap_or_default();
    let what = shortened(&denial.what, IN_LINE);
    // The grate's text may begin with the name of the call.
    let call = if what.starts_with(call.trim_end()) { "" } else { &call };
    let end = denial.error.map_or_else(|| "all programs are killed".to_owned(), |errno| format!("{errno}"));
    let other = instead(denial).map(|other| format!("; instead: {other}")).unwrap_or_default();
    let how = hint(denial).map(|hint| format!("; to allow it: {hint}")).unwrap_or_default();
    // If the line of grates itself exceeds a limit, no program is to blame.
    let in_front = is_limit(denial) && is_grate_name(denial.program.as_bytes());
    let program = if in_front { "the sandbox itself".to_owned() } else { shortened(&denial.program, IN_LINE) };
    let rule = shortened(&denial.rule, IN_LINE);
    let why = if is_limit(denial) { format!("{rule}: {what}") } else { format!("{call}{what}: {rule}") };
    format!("denied: {program} ({}): {why}: {end}{other}{how}", denial.client.0)
}

/// A text for the command itself: what was denied, what it can do, and what it can ask for.
pub fn explanation(denial: &Denial) -> String {
    let [program, what, rule] = [&denial.program, &denial.what, &denial.rule].map(|text| shortened(text, IN_LINE));
    let error = denial.error.map(|errno| format!("{errno}")).unwrap_or_default();
    let first = format!("{program} ({}): {what}: {rule}: {error}", denial.client.0);
    let instead = instead(denial).map(|other| format!("    instead: {other}"));
    let how =
        hint(denial).map(|hint| format!("    to be allowed it, ask the person who started this sandbox for: {hint}"));
    let lines = [Some(first), instead, how];
    let shown: Vec<_> = lines.into_iter().flatten().map(|line| text::shown(&line)).collect();
    format!("{}\n\n", shown.join("\n"))
}

/// A line of JSON, for programs.
pub fn object(denial: &Denial) -> String {
    text::json(&format!("{}\n", described(denial)))
}

/// The denial as JSON.
pub fn described(denial: &Denial) -> Value {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
    json!({
        "time": time, "grate": grate(denial), "rule": shortened(&denial.rule, IN_OBJECT), "call": call(denial),
        "arguments": shortened(&denial.what, IN_OBJECT), "error": denial.error.map(|errno| errno.to_string()),
        "program": shortened(&denial.program, IN_OBJECT), "cage": denial.client.0, "instead": instead(denial), "hint": hint(denial),
    })
}

/// A text without its middle if it is long: names of files have the directory in front, and the
/// name itself at the end.
pub fn shortened(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let (head, tail) = (text.floor_char_boundary(most / 2), text.ceil_char_boundary(text.len() - most / 2));
    format!("{}[{} bytes left out]{}", &text[..head], tail - head, &text[tail..])
}

/// Whether the denial is about a limit.
pub fn is_limit(denial: &Denial) -> bool {
    denial.rule.starts_with("limit ")
}

/// The name of the grate that denied the call.
pub fn grate(denial: &Denial) -> &str {
    denial.grate.strip_suffix("_grate").unwrap_or(&denial.grate)
}

/// The name of the denied call.
pub fn call(denial: &Denial) -> Option<String> {
    let number = u32::try_from(denial.number).ok().filter(|_| denial.error.is_some())?;
    lind_abi::syscall(number).filter(|_| !is_limit(denial)).map(|row| row.name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::tests::denial;
    use super::*;
    use lind_abi::{CageId, Errno};

    #[test]
    fn lines_speak_to_both_readers() {
        let texts = ["no rule allows it", "connect tcp 10.0.0.1:22", "10.0.0.1:22"];
        let text = line(&denial("net_grate", Some(Errno::EACCES), texts));
        assert!(text.starts_with("denied: bash (7): connect tcp 10.0.0.1:22: no rule allows it: "), "{text}");
        assert!(text.ends_with("; to allow it: --allow 10.0.0.1:22") && text.contains("; instead: "), "{text}");
        let limit = denial("resource_grate", None, ["limit cpu", "1s of 1s used", "cpu"]);
        let text = line(&limit);
        assert!(text.starts_with("denied: bash (7): limit cpu: 1s of 1s used: all programs are killed"), "{text}");
        assert!(text.ends_with("to allow it: a larger --cpu"), "{text}");
    }

    #[test]
    fn long_names_lose_their_middle() {
        assert_eq!(shortened("abcdef", 6), "abcdef");
        assert_eq!(shortened("abcdefgh", 4), "ab[4 bytes left out]gh");
        assert_eq!(shortened("\u{fc}\u{fc}\u{fc}\u{fc}", 3), "[8 bytes left out]");
    }

    #[test]
    fn a_limit_is_reached_once() {
        let of = |client| Denial {
            client: CageId(client),
            ..denial("resource_grate", None, ["limit cpu", &format!("{client}"), "cpu"])
        };
        assert_eq!(key(&of(1)), key(&of(2)));
    }
}
