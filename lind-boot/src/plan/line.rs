//! The line of grates that enforces a sandbox's rules, outermost first.

use std::ffi::{OsStr, OsString};
use std::net::IpAddr;

use anyhow::{Result, anyhow, bail, ensure};
use lind_kernel::text::is_seen;

use super::policy::{HASH, LIMITS, Policy, ProgramRules};
use super::protection;
use super::volume::{Tmpfs, Volume, changed};
use crate::cli::sandbox::{Amounts, Network, Options};
use crate::named::{For, Named};

/// The grates before the command, as one would type them.
///
/// `notes` are the files in which the grates of a learning run note limits, addresses and files.
pub fn grates(
    options: &Options,
    policy: &Policy,
    volumes: &[Volume],
    notes: Option<&[String; 3]>,
    peaks: Option<&str>,
) -> Result<Vec<OsString>> {
    let mut line = before_files(options, policy, volumes, (notes, peaks))?;
    let mut filter = filter(protection::words(policy, volumes), policy);
    // The caller's own files stay usable: output may go to a file that the command could not open.
    filter.extend((!filter.is_empty()).then(|| "--given".into()));
    line.extend(filter);
    // The network's grate comes behind the write filter: it shall judge the program's own calls,
    // not those that a grate makes for the program.
    let own = own_sockets(volumes);
    line.extend(bytes(network(options, policy, notes.map(|[_, network, _]| network.as_str()), own)?));
    for program in &policy.program {
        line.extend(bytes(clamp(program)?));
    }
    line.extend(bytes(lists(policy)));
    // Nearest to the command, to see the command's own calls, and not those that grates make to
    // look something up.
    if let Some([.., files]) = notes {
        line.extend(["seccomp_grate", "--lists", "--learn", files].map(OsString::from));
    }
    Ok(line)
}

/// The grates in front of those that check paths.
fn before_files(
    options: &Options,
    policy: &Policy,
    volumes: &[Volume],
    (notes, peaks): (Option<&[String; 3]>, Option<&str>),
) -> Result<Vec<OsString>> {
    let mut line = overlays(volumes, options.overlay_all.is_none());
    if let Some(file) = &options.audit {
        ensure!(
            file.symlink_metadata().is_err(),
            "--audit {}: already exists; a log is never overwritten, so name a new file",
            file.display()
        );
        let file = Named::find("--audit", file, For::Results, &changed(volumes))?;
        line.extend(["witness_grate".into(), "-o".into(), std::path::absolute(file.path())?.into()]);
    }
    line.extend(bytes(match notes {
        Some([limits, ..]) => noted_limits(&options.amounts, policy, limits),
        None => limits_with_peaks(&options.amounts, policy, peaks),
    }));
    Ok(line)
}

fn bytes(words: Vec<String>) -> impl Iterator<Item = OsString> {
    words.into_iter().map(OsString::from)
}

/// A word `--NAME=PATH`. A path may have any bytes.
fn with_path(option: &str, path: &OsStr) -> OsString {
    let mut word = OsString::from(option);
    word.push(path);
    word
}

/// The grates that are file systems in memory, where the host mounts none. They are nearest to the
/// kernel: the grates that allow or refuse calls come before them.
pub fn in_memory(tmpfs: &[Tmpfs]) -> Vec<OsString> {
    let mut words = Vec::new();
    for tmpfs in tmpfs {
        let size = format!("--size={}", tmpfs.size.to_uppercase());
        words.extend(["imfs_grate".into(), with_path("--prefix=", tmpfs.guest.as_os_str()), size.into()]);
    }
    words
}

/// The overlays. They are nearest to the kernel: the grates that check the command's calls come
/// before them. With `hint`, each prints at the end how to look at the changes.
fn overlays(volumes: &[Volume], hint: bool) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    for volume in volumes {
        let Some(state) = &volume.overlay else { continue };
        words.extend(["overlay_grate".into(), "--lower".into(), volume.guest.clone().into()]);
        words.extend(["--upper".into(), state.word()]);
        words.extend(["--called".into(), volume.host.clone().into()]);
        if hint {
            words.extend(["--told".into(), state.name.clone()]);
        }
        words.extend(state.head.iter().flat_map(|head| ["--head".into(), head.into()]));
    }
    words
}

/// The limits of all programs together: those of the options, or else of the policy.
pub fn limited(amounts: &Amounts, policy: &Policy) -> Vec<(&'static str, String)> {
    let amount = |limit: &&'static str| {
        let amount = amounts.named(limit).or_else(|| policy.limit(limit))?;
        Some((*limit, amount.to_owned()))
    };
    LIMITS.iter().filter_map(amount).collect()
}

/// The grate for the limits, which notes the largest amounts in `peaks`.
fn limits_with_peaks(amounts: &Amounts, policy: &Policy, peaks: Option<&str>) -> Vec<String> {
    let mut words = limits(amounts, policy);
    if let Some(notes) = peaks.filter(|_| !words.is_empty()) {
        words.push(format!("--learn={notes}"));
    }
    words
}

/// The grate for the limits of all programs together.
pub fn limits(amounts: &Amounts, policy: &Policy) -> Vec<String> {
    let word = |(limit, amount)| match limit {
        "disk" => format!("--write-bytes=file={amount}"),
        limit => format!("--{limit}={amount}"),
    };
    let mut words: Vec<_> = limited(amounts, policy).into_iter().map(word).collect();
    if !words.is_empty() {
        words.insert(0, "resource_grate".to_owned());
    }
    words
}

/// The grates for one program and all that it starts.
fn clamp(program: &ProgramRules) -> Result<Vec<String>> {
    let option = match program.name.strip_prefix(HASH) {
        Some(hash) => format!("--hash={hash}"),
        None => format!("--path={}", program.name),
    };
    let inside = [
        writing(&program.rules),
        network(&Options::default(), &program.rules, None, Vec::new())?,
        lists(&program.rules),
    ];
    let inside = inside.concat();
    if inside.is_empty() {
        return Ok(Vec::new());
    }
    Ok([vec!["program_grate".to_owned(), option, "%{".to_owned()], inside, vec!["%}".to_owned()]].concat())
}

/// The grate that notes amounts in a learning run. A limit that is not set becomes one that cannot
/// be reached: an amount is counted only if it is limited.
fn noted_limits(amounts: &Amounts, policy: &Policy, notes: &str) -> Vec<String> {
    let mut words = limits(amounts, policy);
    if words.is_empty() {
        words.push("resource_grate".to_owned());
    }
    let endless =
        [("memory", "4T"), ("cpu", "100000h"), ("cages", "1000000"), ("files", "1000000"), ("threads", "1000000")];
    let limited = |words: &[String], limit: &str| words.iter().any(|word| word.starts_with(&format!("--{limit}=")));
    for (limit, amount) in endless {
        if !limited(&words, limit) {
            words.push(format!("--{limit}={amount}"));
        }
    }
    if !limited(&words, "write-bytes") {
        words.push("--write-bytes=file=1000T".to_owned());
    }
    words.push(format!("--learn={notes}"));
    words
}

/// The grate for the calls, files and programs that a policy lists.
fn lists(policy: &Policy) -> Vec<String> {
    let mut words = Vec::new();
    if let Some(calls) = &policy.calls {
        words.push(format!("--calls={}", calls.join(",")));
    }
    // A file that may be written may also be read, and a program is inspected before it is run.
    let read = policy.read.as_ref().map(|read| [Some(read), policy.write.as_ref(), policy.programs.as_ref()]);
    for (option, patterns) in
        [("path", read), ("program", policy.programs.as_ref().map(|programs| [Some(programs), None, None]))]
    {
        let Some(patterns) = patterns else { continue };
        words.push(format!("--{option}="));
        words.extend(patterns.into_iter().flatten().flatten().map(|pattern| format!("--{option}={pattern}")));
    }
    if !words.is_empty() {
        words.insert(0, "seccomp_grate".to_owned());
    }
    words
}

/// Whether any host may be reached.
pub fn reaches_others(options: &Options, policy: &Policy) -> bool {
    has_network(options, policy) || options.allow.iter().chain(&policy.allow).next().is_some()
}

fn has_network(options: &Options, policy: &Policy) -> bool {
    options.network.map_or(policy.network, |network| network == Network::Host)
}

/// The grate for the network. The host's network without rules needs none.
fn network(options: &Options, policy: &Policy, notes: Option<&str>, own: Vec<String>) -> Result<Vec<String>> {
    let rules = options.allow.iter().chain(&policy.allow);
    let free = has_network(options, policy);
    ensure!(
        !free || options.publish.is_empty(),
        "--publish cannot be used with the host's network, where programs listen on the host's own ports"
    );
    let mut words = vec!["net_grate".to_owned()];
    for rule in rules {
        ensure!(options.network != Some(Network::None), "--allow {rule} cannot be used with --network none");
        words.push(format!("--allow={}", net_rule(rule)?));
    }
    let unruled = free && words.len() == 1;
    if unruled {
        words.push("--default=allow".to_owned());
    } else {
        words.extend(own);
    }
    if !free {
        words.push("--loopback=own".to_owned());
    }
    words.extend(notes.map(|notes| format!("--learn={notes}")));
    Ok(if unruled && notes.is_none() { Vec::new() } else { words })
}

/// The rules for sockets between programs of one sandbox: they may use sockets in the sandbox's own
/// directories, but not in a volume there, where a program outside may have created them.
fn own_sockets(volumes: &[Volume]) -> Vec<String> {
    // A rule is split at blanks, and its path is a pattern.
    let plain = |path: &str| path.chars().all(|c| is_seen(c) && !c.is_whitespace() && !"*?[]\\".contains(c));
    let rules = |scratch: &str| {
        let inside = volumes.iter().map(|volume| &volume.guest).filter(|guest| guest.starts_with(scratch));
        let inside: Option<Vec<_>> = inside.map(|guest| guest.to_str().filter(|guest| plain(guest))).collect();
        let refused =
            inside?.into_iter().flat_map(|guest| ["", "/*"].map(|end| format!("--deny=any unix:{guest}{end}")));
        Some(refused.chain([format!("--allow=any unix:{scratch}/*")]).collect::<Vec<_>>())
    };
    // Abstract names belong to the runner alone.
    let abstract_names = ["--allow=any unix:@*".to_owned()];
    super::SCRATCH.iter().filter_map(|scratch| rules(scratch)).flatten().chain(abstract_names).collect()
}

/// Converts HOST[:PORT] to a rule of the net grate. A text with blanks is such a rule already.
fn net_rule(text: &str) -> Result<String> {
    if text.contains(' ') {
        return Ok(text.to_owned());
    }
    if let Some((scheme, rest)) = text.split_once("://") {
        let (host, port) = (rest.split('/').next().unwrap_or_default(), if scheme == "https" { 443 } else { 80 });
        let port = if host.contains(':') { String::new() } else { format!(":{port}") };
        bail!("--allow {text}: expected a host, not a URL: --allow {host}{port}");
    }
    let (host, port) = match text.rsplit_once(':') {
        // An IPv6 address has colons of its own; with a port it is in brackets.
        Some((host, port)) if !host.contains(':') || (host.starts_with('[') && host.ends_with(']')) => (host, port),
        _ => (text, "*"),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    ensure!(!host.is_empty(), "--allow {text}: expected HOST[:PORT]");
    if let Some((address, bits)) = host.split_once('/') {
        let most = address.parse().map(|address: IpAddr| if address.is_ipv4() { 32 } else { 128 });
        let most: u8 = most.map_err(|_| anyhow!("--allow {text}: {address} is not an IP address"))?;
        ensure!(
            bits.parse::<u8>().is_ok_and(|bits| bits <= most),
            "--allow {text}: expected 0 to {most} bits after the slash"
        );
    }
    // The host's resolver is not asked for such names, so no rule can match them.
    ensure!(
        !(host.starts_with("*.") && host.trim_end_matches('.').ends_with(".localhost")),
        "--allow {text}: names below localhost are never resolved; name the address: --allow 127.0.0.1:{port}"
    );
    let number = port == "*" || port.split(['-', ',']).all(|part| part.parse::<u16>().is_ok_and(|port| port > 0));
    ensure!(number, "--allow {text}: {port} is not a port");
    Ok(format!("out {host} {port}"))
}

/// The grate that denies changes of all files but those that may be written.
fn writing(policy: &Policy) -> Vec<String> {
    filter(Vec::new(), policy)
}

fn write_patterns(policy: &Policy) -> Vec<String> {
    match policy.write.as_deref() {
        // Without a pattern the grate would allow all.
        Some([]) => vec!["--protect=/".to_owned()],
        Some(patterns) => patterns.iter().map(|pattern| format!("--allow={pattern}")).collect(),
        None => Vec::new(),
    }
}

/// The write filter with these options and the patterns of what may be written. Empty if there are
/// neither.
fn filter<T: From<String>>(mut options: Vec<T>, policy: &Policy) -> Vec<T> {
    options.extend(write_patterns(policy).into_iter().map(T::from));
    if !options.is_empty() {
        options.splice(..0, ["write_filter_grate", "--errno=EROFS"].map(|word| T::from(word.to_owned())));
    }
    options
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;

    use super::*;

    /// As one would type them.
    fn shown(words: &[OsString]) -> String {
        words.join(OsStr::new(" ")).into_string().unwrap()
    }

    #[test]
    fn hosts_become_rules() {
        let rule = |text: &str| net_rule(text).unwrap();
        assert_eq!(rule("example.org"), "out example.org *");
        assert_eq!(rule("example.org:443"), "out example.org 443");
        assert_eq!(rule("10.0.0.0/8:80,8000-8100"), "out 10.0.0.0/8 80,8000-8100");
        assert_eq!(rule("2001:db8::1"), "out 2001:db8::1 *");
        assert_eq!(rule("[2001:db8::1]:53"), "out 2001:db8::1 53");
        assert_eq!(rule("in tcp 127.0.0.1 8080"), "in tcp 127.0.0.1 8080");
        for wrong in [":443", "a:b", "a:0", "a:70000", "", "10.0.0.0/40", "10.0.0/8", "::1/129", "*.localhost:80"] {
            assert!(net_rule(wrong).is_err(), "{wrong}");
        }
        assert!(net_rule("http://h/").unwrap_err().to_string().ends_with("--allow h:80"));
        assert!(net_rule("https://h:8443/x").unwrap_err().to_string().ends_with("--allow h:8443"));
    }

    #[test]
    fn sockets_of_volumes_are_not_the_sandbox_s_own() {
        let at = |guest: &str| Volume { host: "/h".into(), guest: guest.into(), read_only: true, overlay: None };
        let allowed = |volumes: &[Volume]| own_sockets(volumes).join(" ");
        let rest = "--allow=any unix:/home/user/* --allow=any unix:@*";
        assert_eq!(allowed(&[at("/src")]), format!("--allow=any unix:/tmp/* {rest}"));
        let refused = "--deny=any unix:/tmp/p --deny=any unix:/tmp/p/* --allow=any unix:/tmp/*";
        assert_eq!(allowed(&[at("/tmp/p")]), format!("{refused} {rest}"));
        for odd in ["/tmp/a b", "/tmp/a*", "/tmp/[a]"] {
            assert_eq!(allowed(&[at(odd)]), rest);
        }
    }

    #[test]
    fn options_go_before_the_policy() {
        let mut policy = Policy::named("agent", &crate::named::Changed::default()).unwrap();
        let amounts = Amounts { memory: Some("1G".into()), disk: Some("5M".into()), ..Amounts::default() };
        let options = Options { amounts, ..Options::default() };
        let line = shown(&grates(&options, &policy, &[], None, None).unwrap());
        assert_eq!(
            line,
            "resource_grate --memory=1G --cages=256 --files=4096 --write-bytes=file=5M net_grate --allow=any unix:/tmp/* \
             --allow=any unix:/home/user/* --allow=any unix:@* --loopback=own"
        );
        policy.network = true;
        assert!(!grates(&options, &policy, &[], None, None).unwrap().contains(&OsString::from("net_grate")));
        let none = Options { network: Some(Network::None), ..Options::default() };
        assert!(grates(&none, &policy, &[], None, None).unwrap().contains(&OsString::from("net_grate")));
        let both = Options { network: Some(Network::None), allow: vec!["a".into()], ..Options::default() };
        assert!(grates(&both, &policy, &[], None, None).is_err());
    }

    #[test]
    fn lists_are_options_of_grates() {
        let list = |text: &str| Some(vec![text.to_owned()]);
        let policy = Policy {
            calls: list("read"),
            read: list("/r"),
            write: list("/w/**"),
            programs: list("/p"),
            ..Policy::default()
        };
        assert_eq!(writing(&policy).join(" "), "write_filter_grate --errno=EROFS --allow=/w/**");
        let words = lists(&policy).join(" ");
        assert_eq!(
            words,
            "seccomp_grate --calls=read --path= --path=/r --path=/w/** --path=/p --program= --program=/p"
        );
        let nothing = Policy { write: Some(Vec::new()), ..Policy::default() };
        assert_eq!(writing(&nothing).join(" "), "write_filter_grate --errno=EROFS --protect=/");
        assert!(lists(&Policy::default()).is_empty());
    }

    #[test]
    fn a_program_has_a_chain_of_its_own() {
        let rules = Policy { network: true, programs: Some(Vec::new()), ..Policy::default() };
        let program = |rules: &Policy| ProgramRules { name: "/bin/git".into(), rules: rules.clone() };
        assert_eq!(
            clamp(&program(&rules)).unwrap().join(" "),
            "program_grate --path=/bin/git %{ seccomp_grate --program= %}"
        );
        assert!(clamp(&program(&Policy { network: true, ..Policy::default() })).unwrap().is_empty());
        let none = clamp(&program(&Policy::default())).unwrap().join(" ");
        assert_eq!(none, "program_grate --path=/bin/git %{ net_grate --loopback=own %}");
    }

    #[test]
    fn what_is_learned_is_counted() {
        let notes = ["/l", "/n", "/f"].map(str::to_owned);
        let policy = Policy { network: true, limits: vec![("cages".into(), "5".into())], ..Policy::default() };
        let line = shown(&grates(&Options::default(), &policy, &[], Some(&notes), None).unwrap());
        assert!(
            line.contains("--cages=5 ") && !line.contains("--cages=1000000") && line.contains("--memory=4T"),
            "{line}"
        );
        assert!(line.contains("net_grate --default=allow --learn=/n seccomp_grate --lists --learn /f"), "{line}");
    }

    #[test]
    fn names_are_protected_in_what_can_be_changed() {
        let volume = |read_only| Volume { host: "/etc".into(), guest: "/p".into(), read_only, overlay: None };
        let policy = Policy { protect: vec![".git/hooks".into(), ".envrc".into()], ..Policy::default() };
        let protection = |policy: &Policy, volumes: &[Volume]| filter(protection::words(policy, volumes), policy);
        let line = shown(&protection(&policy, &[volume(false)]));
        assert_eq!(line, "write_filter_grate --errno=EROFS --protect=/p/.git/hooks --protect=/p/.envrc");
        assert!(protection(&policy, &[volume(true)]).is_empty());
        let odd = Volume { guest: OsStr::from_bytes(b"/\xff").into(), ..volume(false) };
        assert_eq!(protection(&policy, &[odd])[2].as_bytes(), b"--protect=/\xff/.git/hooks");
        assert!(protection(&Policy::default(), &[volume(false)]).is_empty());
    }
}
