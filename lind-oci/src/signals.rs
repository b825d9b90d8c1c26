//! Signals by number and name.

const NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM",
    "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO",
    "PWR", "SYS",
];

/// The number of SIGKILL.
pub const KILL: u8 = 9;

/// Parses the number of a signal, or its name with or without SIG: RTMIN+3 and RTMAX-2 are names,
/// too.
///
/// # Errors
/// The form that the text must have.
pub fn signal(text: &str) -> Result<u8, String> {
    let upper = text.to_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    let named = NAMES.iter().position(|known| *known == name).and_then(|at| u8::try_from(at + 1).ok());
    let number = named.or_else(|| realtime(name)).or_else(|| text.parse().ok());
    let number = number.filter(|number| (1..=64).contains(number));
    number.ok_or_else(|| {
        format!("unknown signal \"{text}\": expected the name or number of a signal, such as TERM, SIGTERM, 15")
    })
}

/// The number of a realtime signal. The C libraries of the host use the two below RTMIN.
fn realtime(name: &str) -> Option<u8> {
    let (from, rest, sign) = match (name.strip_prefix("RTMIN"), name.strip_prefix("RTMAX")) {
        (Some(rest), _) => (34_i16, rest, '+'),
        (None, Some(rest)) => (64, rest, '-'),
        (None, None) => return None,
    };
    let offset: i16 = if rest.is_empty() { 0 } else { rest.strip_prefix(sign)?.parse().ok()? };
    let number = if sign == '+' { from + offset } else { from - offset };
    u8::try_from(number).ok().filter(|number| (34..=64).contains(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names_and_numbers() {
        for (text, number) in [
            ("TERM", 15),
            ("SIGTERM", 15),
            ("sigkill", 9),
            ("9", 9),
            ("64", 64),
            ("RTMIN", 34),
            ("SIGRTMIN+3", 37),
            ("RTMAX-2", 62),
        ] {
            assert_eq!(signal(text), Ok(number), "{text}");
        }
        for wrong in ["", "0", "65", "SIG", "-1", "RTMIN-1", "RTMAX+1", "RTMIN+99", "TERMX"] {
            assert!(signal(wrong).is_err(), "{wrong}");
        }
    }
}
