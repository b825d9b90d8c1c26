//! The line of grates that enforces a sandbox's rules, outermost first.

use std::net::IpAddr;

use anyhow::{Result, anyhow, bail, ensure};
use lind_engine::code::manifest::Use;
use lind_kernel::Allowance;
use lind_kernel::text::is_seen;

use super::policy::{HASH, Policy};
use super::protection;
use super::step::{Setting, Step, Value};
use super::volume::{Tmpfs, Volume, changed};
use crate::amount::{Amount, Kind};
use crate::cli::sandbox::{Amounts, Network, Options};
use crate::named::{For, Named};

/// The grates before the command.
///
/// `kept` says what else the write filter protects. `notes` are the files in which the grates of a
/// learning run note limits, addresses and files, `used` the one in which the amounts used are
/// counted.
pub fn grates(
    options: &Options,
    policy: &Policy,
    volumes: &[Volume],
    (kept, notes, used): (Vec<Setting>, Option<&[String; 3]>, Option<&str>),
) -> Result<Vec<Step>> {
    let mut line = before_files(options, policy, volumes, (notes, used))?;
    // The caller's own files stay usable: output may go to a file that the command could not open.
    let protected = [protection::settings(policy, volumes), kept].concat();
    line.extend(filter(protected, policy).map(|step| step.with("--given", Value::Flag)));
    // The network's grate comes behind the write filter: it shall judge the program's own calls,
    // not those that a grate makes for the program.
    let own = own_sockets(volumes);
    line.extend(network(options, policy, notes.map(|[_, network, _]| network.as_str()), own)?);
    for (name, rules) in &policy.program {
        line.extend(clamp(name, rules)?);
    }
    line.extend(lists(policy));
    // Nearest to the command, to see the command's own calls, and not those that grates make to
    // look something up.
    if let Some([.., files]) = notes {
        line.push(Step::new("seccomp_grate").with("--lists", Value::Flag).with("--learn", noted(files)));
    }
    Ok(line)
}

/// The value of an option that names the file for a grate's notes.
fn noted(file: &str) -> Value {
    Value::host(file, Use::Writes)
}

/// The grates in front of those that check paths.
fn before_files(
    options: &Options,
    policy: &Policy,
    volumes: &[Volume],
    (notes, used): (Option<&[String; 3]>, Option<&str>),
) -> Result<Vec<Step>> {
    let mut line = overlays(volumes, options.overlay_all.is_none());
    if let Some(file) = &options.audit {
        ensure!(
            file.symlink_metadata().is_err(),
            "--audit {}: already exists; a log is never overwritten, so name a new file",
            file.display()
        );
        let file = Named::find("--audit", file, For::Results, &changed(volumes))?;
        let log = Value::host(std::path::absolute(file.path())?, Use::Creates);
        line.push(Step::new("witness_grate").with("--log", log));
    }
    let limits = match notes {
        Some([limits, ..]) => Some(noted_limits(&options.amounts, policy, limits)),
        None => limits(&options.amounts, policy),
    };
    line.extend(limits.map(|step| match used {
        Some(used) => step.with("--use", Value::host(used, Use::Updates)),
        None => step,
    }));
    Ok(line)
}

/// The grates that are file systems in memory, where the host mounts none. They are nearest to the
/// kernel: the grates that allow or refuse calls come before them.
pub fn in_memory(tmpfs: &[Tmpfs]) -> Vec<Step> {
    let of = |tmpfs: &Tmpfs| {
        let step = Step::new("imfs_grate").with("--prefix", Value::text(&tmpfs.guest));
        step.with("--size", amount(tmpfs.size))
    };
    tmpfs.iter().map(of).collect()
}

/// The overlays. They are nearest to the kernel: the grates that check the command's calls come
/// before them. With `hint`, each prints at the end how to look at the changes.
fn overlays(volumes: &[Volume], hint: bool) -> Vec<Step> {
    let mut line = Vec::new();
    for volume in volumes {
        let Some(state) = &volume.overlay else { continue };
        let mut step = Step::new("overlay_grate")
            .with("--lower", Value::text(&volume.guest))
            .with("--upper", Value::host(state.word(), Use::State))
            .with("--called", Value::text(&volume.host));
        if hint {
            step = step.with("--shown-as", Value::text(&state.name));
        }
        if let Some(head) = &state.head {
            step = step.with("--head", Value::text(head));
        }
        line.push(step);
    }
    line
}

/// The limits of all programs together: those of the options, or else of the policy.
pub fn limited(amounts: &Amounts, policy: &Policy) -> Vec<(&'static str, Amount)> {
    amounts.or(&policy.limits).set()
}

fn amount(amount: Amount) -> Value {
    Value::Amount("".into(), amount)
}

/// The grate for the limits of all programs together.
pub fn limits(amounts: &Amounts, policy: &Policy) -> Option<Step> {
    let settings: Vec<_> = limited(amounts, policy).into_iter().map(limit).collect();
    (!settings.is_empty()).then(|| Step { settings, ..Step::new("resource_grate") })
}

/// The limits of the grates on a line.
pub fn allowance(line: &[Step]) -> Allowance {
    let limit = |name: &str, endless: u64| {
        let settings = line.iter().filter(|step| step.grate == "resource_grate").flat_map(|step| &step.settings);
        let values = settings.filter(|setting| setting.name == name).filter_map(|setting| match &setting.value {
            Value::Amount(_, amount) => Some(amount.number),
            _ => None,
        });
        values.filter(|&number| number < endless).min()
    };
    Allowance { memory: limit("--memory", ENDLESS), cpu: None, pids: limit("--threads", COUNTLESS) }
}

/// The option for a limit. `disk` limits the bytes that are written to files.
pub fn limit((limit, of): (&str, Amount)) -> Setting {
    match limit {
        "disk" => Setting::new("--write-bytes", Value::Amount("file=".into(), of)),
        limit => Setting::new(format!("--{limit}"), amount(of)),
    }
}

/// The grate for one program and all that it starts.
fn clamp(program: &str, rules: &Policy) -> Result<Option<Step>> {
    let inside = [writing(rules), network(&Options::default(), rules, None, Vec::new())?, lists(rules)];
    let inside: Vec<_> = inside.into_iter().flatten().collect();
    if inside.is_empty() {
        return Ok(None);
    }
    let step = match program.strip_prefix(HASH) {
        Some(hash) => Step::new("program_grate").with("--hash", Value::text(hash)),
        None => Step::new("program_grate").with("--path", Value::text(program)),
    };
    Ok(Some(Step { inside: vec![inside], ..step }))
}

/// A size that cannot be reached, and a number of things.
const ENDLESS: u64 = 1 << 50;
const COUNTLESS: u64 = 1_000_000;

/// The grate that notes amounts in a learning run. A limit that is not set becomes one that cannot
/// be reached: an amount is counted only if it is limited.
fn noted_limits(amounts: &Amounts, policy: &Policy, notes: &str) -> Step {
    let mut step = limits(amounts, policy).unwrap_or_else(|| Step::new("resource_grate"));
    let endless = |name: &str| match Kind::of(name) {
        Kind::Bytes => ENDLESS,
        Kind::Time => 360_000_000_000_000_000,
        Kind::Count => COUNTLESS,
    };
    let endless = Amounts::of(|name| Some(Amount { kind: Kind::of(name), number: endless(name) }));
    for setting in endless.set().into_iter().map(limit) {
        if step.settings.iter().all(|set| set.name != setting.name) {
            step.settings.push(setting);
        }
    }
    step.with("--learn", noted(notes))
}

/// The grate for the calls, files and programs that a policy lists.
fn lists(policy: &Policy) -> Option<Step> {
    let mut settings = Vec::new();
    if let Some(calls) = &policy.calls {
        settings.push(Setting::new("--calls", Value::text(calls.join(","))));
    }
    // A file that may be written may also be read, and a program is inspected before it is run.
    let read = policy.read.as_ref().map(|read| [Some(read), policy.write.as_ref(), policy.programs.as_ref()]);
    for (option, patterns) in
        [("--path", read), ("--program", policy.programs.as_ref().map(|programs| [Some(programs), None, None]))]
    {
        let Some(patterns) = patterns else { continue };
        settings.push(Setting::new(option, Value::text("")));
        let patterns = patterns.into_iter().flatten().flatten();
        settings.extend(patterns.map(|pattern| Setting::new(option, Value::text(pattern))));
    }
    (!settings.is_empty()).then(|| Step { settings, ..Step::new("seccomp_grate") })
}

/// Whether any host may be reached.
pub fn reaches_others(options: &Options, policy: &Policy) -> bool {
    has_network(options, policy) || options.allow.iter().chain(policy.allow.iter().flatten()).next().is_some()
}

fn has_network(options: &Options, policy: &Policy) -> bool {
    options.network.or(policy.network) == Some(Network::Host)
}

/// The grate for the network. The host's network without rules needs none.
fn network(options: &Options, policy: &Policy, notes: Option<&str>, own: Vec<Setting>) -> Result<Option<Step>> {
    let rules = options.allow.iter().chain(policy.allow.iter().flatten());
    let free = has_network(options, policy);
    ensure!(
        !free || options.publish.is_empty(),
        "--publish cannot be used with the host's network, where programs listen on the host's own ports"
    );
    let mut settings = Vec::new();
    for rule in rules {
        ensure!(options.network != Some(Network::None), "--allow {rule} cannot be used with --network none");
        settings.push(Setting::new("--allow", Value::text(net_rule(rule)?)));
    }
    let unruled = free && settings.is_empty();
    if unruled {
        settings.push(Setting::new("--default", Value::text("allow")));
    } else {
        settings.extend(own);
    }
    if !free {
        settings.push(Setting::new("--loopback", Value::text("own")));
    }
    settings.extend(notes.map(|notes| Setting::new("--learn", noted(notes))));
    Ok((!unruled || notes.is_some()).then(|| Step { settings, ..Step::new("net_grate") }))
}

/// The rules for sockets between programs of one sandbox: they may use sockets in the sandbox's own
/// directories, but not in a volume there, where a program outside may have created them.
fn own_sockets(volumes: &[Volume]) -> Vec<Setting> {
    let socket = |option: &'static str, name: &str| Setting::new(option, Value::text(format!("any unix:{name}")));
    // A rule is split at blanks, and its path is a pattern.
    let plain = |path: &str| path.chars().all(|c| is_seen(c) && !c.is_whitespace() && !"*?[]\\".contains(c));
    let rules = |scratch: &str| {
        let inside = volumes.iter().map(|volume| &volume.guest).filter(|guest| guest.starts_with(scratch));
        let inside: Option<Vec<_>> = inside.map(|guest| guest.to_str().filter(|guest| plain(guest))).collect();
        let refused =
            inside?.into_iter().flat_map(|guest| ["", "/*"].map(|end| socket("--deny", &format!("{guest}{end}"))));
        Some(refused.chain([socket("--allow", &format!("{scratch}/*"))]).collect::<Vec<_>>())
    };
    // Abstract names belong to the runner alone.
    let abstract_names = [socket("--allow", "@*")];
    super::SCRATCH.iter().filter_map(|scratch| rules(scratch)).flatten().chain(abstract_names).collect()
}

/// The ending of a name that may also have addresses of this host and of private networks.
const PRIVATE: &str = "/private";

/// Converts HOST[:PORT][/private] to a rule of the net grate. A text with blanks is such a rule
/// already.
///
/// # Errors
/// A mistake in the host or the port.
pub fn net_rule(text: &str) -> Result<String> {
    if text.contains(' ') {
        return Ok(text.to_owned());
    }
    let (text, private) = text.strip_suffix(PRIVATE).map_or((text, ""), |name| (name, PRIVATE));
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
    ensure!(
        private.is_empty() || !(host.contains('/') || host.parse::<IpAddr>().is_ok()),
        "--allow {text}{PRIVATE}: {PRIVATE} is for names; an address is allowed as it is: --allow {text}"
    );
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
    Ok(format!("out {host}{private} {port}"))
}

/// The grate that denies changes of all files but those that may be written.
fn writing(policy: &Policy) -> Option<Step> {
    filter(Vec::new(), policy)
}

fn write_patterns(policy: &Policy) -> Vec<Setting> {
    match policy.write.as_deref() {
        // Without a pattern the grate would allow all.
        Some([]) => vec![Setting::new("--protect", Value::text("/"))],
        Some(patterns) => patterns.iter().map(|pattern| Setting::new("--allow", Value::text(pattern))).collect(),
        None => Vec::new(),
    }
}

/// The write filter with these options and the patterns of what may be written. None if there are
/// neither.
fn filter(mut rules: Vec<Setting>, policy: &Policy) -> Option<Step> {
    rules.extend(write_patterns(policy));
    let errno = Setting::new("--errno", Value::text("EROFS"));
    (!rules.is_empty()).then(|| Step { settings: [vec![errno], rules].concat(), ..Step::new("write_filter_grate") })
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::super::policy::Protect;
    use super::super::step;
    use super::*;

    /// As one would type them.
    fn shown<'a>(line: impl IntoIterator<Item = &'a Step>) -> String {
        let line: Vec<Step> = line.into_iter().cloned().collect();
        step::words(&line).join(OsStr::new(" ")).into_string().unwrap()
    }

    fn has(line: &[Step], grate: &str) -> bool {
        line.iter().any(|step| step.grate == grate)
    }

    #[test]
    fn hosts_become_rules() {
        let rule = |text: &str| net_rule(text).unwrap();
        assert_eq!(rule("example.org"), "out example.org *");
        assert_eq!(rule("example.org:443"), "out example.org 443");
        assert_eq!(rule("db.internal:5432/private"), "out db.internal/private 5432");
        assert_eq!(rule("db.internal/private"), "out db.internal/private *");
        assert_eq!(rule("10.0.0.0/8:80,8000-8100"), "out 10.0.0.0/8 80,8000-8100");
        assert_eq!(rule("2001:db8::1"), "out 2001:db8::1 *");
        assert_eq!(rule("[2001:db8::1]:53"), "out 2001:db8::1 53");
        assert_eq!(rule("in tcp 127.0.0.1 8080"), "in tcp 127.0.0.1 8080");
        for wrong in [
            ":443",
            "a:b",
            "a:0",
            "a:70000",
            "",
            "10.0.0.0/40",
            "10.0.0/8",
            "::1/129",
            "*.localhost:80",
            "10.0.0.1:80/private",
            "10.0.0.0/8/private",
            "/private",
        ] {
            assert!(net_rule(wrong).is_err(), "{wrong}");
        }
        assert!(net_rule("http://h/").unwrap_err().to_string().ends_with("--allow h:80"));
        assert!(net_rule("https://h:8443/x").unwrap_err().to_string().ends_with("--allow h:8443"));
    }

    #[test]
    fn sockets_of_volumes_are_not_the_sandbox_s_own() {
        let at = |guest: &str| Volume { host: "/h".into(), guest: guest.into(), read_only: true, overlay: None };
        let allowed = |volumes: &[Volume]| {
            let step = Step { settings: own_sockets(volumes), ..Step::new("net_grate") };
            shown([&step]).trim_start_matches("net_grate ").to_owned()
        };
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
        let bytes = |text| Kind::Bytes.parse(text).ok();
        let amounts = Amounts { memory: bytes("1G"), disk: bytes("5M"), ..Amounts::default() };
        let options = Options { amounts, ..Options::default() };
        let line = shown(&grates(&options, &policy, &[], (Vec::new(), None, None)).unwrap());
        assert_eq!(
            line,
            "resource_grate --memory=1G --cages=256 --files=4096 --write-bytes=file=5M net_grate --allow=any unix:/tmp/* \
             --allow=any unix:/home/user/* --allow=any unix:@* --loopback=own"
        );
        policy.network = Some(Network::Host);
        assert!(!has(&grates(&options, &policy, &[], (Vec::new(), None, None)).unwrap(), "net_grate"));
        let none = Options { network: Some(Network::None), ..Options::default() };
        assert!(has(&grates(&none, &policy, &[], (Vec::new(), None, None)).unwrap(), "net_grate"));
        let both = Options { network: Some(Network::None), allow: vec!["a".into()], ..Options::default() };
        assert!(grates(&both, &policy, &[], (Vec::new(), None, None)).is_err());
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
        assert_eq!(shown(&writing(&policy)), "write_filter_grate --errno=EROFS --allow=/w/**");
        let words = shown(&lists(&policy));
        assert_eq!(
            words,
            "seccomp_grate --calls=read --path= --path=/r --path=/w/** --path=/p --program= --program=/p"
        );
        let nothing = Policy { write: Some(Vec::new()), ..Policy::default() };
        assert_eq!(shown(&writing(&nothing)), "write_filter_grate --errno=EROFS --protect=/");
        assert!(lists(&Policy::default()).is_none());
    }

    #[test]
    fn a_program_has_a_chain_of_its_own() {
        let rules = Policy { network: Some(Network::Host), programs: Some(Vec::new()), ..Policy::default() };
        let clamp = |rules: &Policy| clamp("/bin/git", rules);
        assert_eq!(shown(&clamp(&rules).unwrap()), "program_grate --path=/bin/git %{ seccomp_grate --program= %}");
        assert!(clamp(&Policy { network: Some(Network::Host), ..Policy::default() }).unwrap().is_none());
        let none = shown(&clamp(&Policy::default()).unwrap());
        assert_eq!(none, "program_grate --path=/bin/git %{ net_grate --loopback=own %}");
    }

    #[test]
    fn what_is_learned_is_counted() {
        let notes = ["/l", "/n", "/f"].map(str::to_owned);
        let policy = Policy {
            network: Some(Network::Host),
            limits: Amounts { cages: Kind::Count.parse("5").ok(), ..Amounts::default() },
            ..Policy::default()
        };
        let line = shown(&grates(&Options::default(), &policy, &[], (Vec::new(), Some(&notes), None)).unwrap());
        assert!(
            line.contains("--cages=5 ") && !line.contains("--cages=1000000") && line.contains("--memory=1024T"),
            "{line}"
        );
        assert!(line.contains("net_grate --default=allow --learn=/n seccomp_grate --lists --learn=/f"), "{line}");
    }

    #[test]
    fn names_are_protected_in_what_can_be_changed() {
        let volume = |read_only| Volume { host: "/etc".into(), guest: "/p".into(), read_only, overlay: None };
        let protect = Protect { names: vec![".git/hooks".into(), ".envrc".into()], ..Protect::default() };
        let policy = Policy { protect, ..Policy::default() };
        let protection = |policy: &Policy, volumes: &[Volume]| filter(protection::settings(policy, volumes), policy);
        let line = shown(&protection(&policy, &[volume(false)]));
        assert_eq!(line, "write_filter_grate --errno=EROFS --protect=/p/.git/hooks --protect=/p/.envrc");
        assert!(protection(&policy, &[volume(true)]).is_none());
        let odd = Volume { guest: OsStr::from_bytes(b"/\xff").into(), ..volume(false) };
        let odd = step::words(&[protection(&policy, &[odd]).unwrap()]);
        assert_eq!(odd[2].as_bytes(), b"--protect=/\xff/.git/hooks");
        assert!(protection(&Policy::default(), &[volume(false)]).is_none());
    }
}
