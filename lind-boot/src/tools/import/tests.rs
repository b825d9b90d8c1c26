//! Settings of each kind, as policies.

use super::*;
use crate::cli::sandbox::Network;

/// The policy of settings in a project, as TOML without comments, and the notes.
fn import(format: Format, text: &str) -> Result<(Policy, Vec<String>)> {
    let source = Source { name: "f", text };
    let mut draft = Draft::new(Places::at("/home/me/p", "/home/me"));
    match format {
        Format::Claude => claude::read(&source, &mut draft)?,
        Format::Srt => srt::read(&source, &mut draft)?,
        Format::Codex => codex::read(&source, &mut draft)?,
    }
    let policy = Policy::parse("p", &policy_text(&draft, "f")?)?;
    for rule in policy.allow.iter().flatten() {
        crate::plan::line::net_rule(rule)?;
    }
    Ok((policy, draft.notes().map(ToString::to_string).collect()))
}

fn srt(network: &str, filesystem: &str) -> (Policy, Vec<String>) {
    import(Format::Srt, &format!("{{\"network\": {{{network}}}, \"filesystem\": {{{filesystem}}}}}")).unwrap()
}

fn codex(text: &str) -> (Policy, Vec<String>) {
    import(Format::Codex, text).unwrap()
}

fn why(format: Format, text: &str) -> String {
    format!("{:#}", import(format, text).err().unwrap_or_else(|| panic!("{text} passes")))
}

fn has(notes: &[String], parts: [&str; 2]) {
    assert!(notes.iter().any(|note| parts.iter().all(|part| note.contains(part))), "{parts:?} in {notes:#?}");
}

fn list(texts: &[&str]) -> Option<Vec<String>> {
    Some(texts.iter().map(|text| (*text).to_owned()).collect())
}

fn protects(policy: &Policy, name: &str) -> bool {
    policy.protect.names.iter().any(|own| own == name)
}

#[test]
fn nothing_is_allowed_that_is_not_named() {
    let (policy, notes) = srt("", "");
    assert!(policy.read_only && policy.network == Some(Network::None) && policy.allow.is_none() && notes.is_empty());
    let (policy, _) = import(Format::Claude, "{\"sandbox\": {\"enabled\": true}}").unwrap();
    assert!(!policy.read_only && policy.write.is_none() && policy.network == Some(Network::None));
    assert!(["**/.git/hooks", "**/.bashrc", "**/.claude"].iter().all(|name| protects(&policy, name)));
    let (policy, notes) = codex("sandbox_mode = \"danger-full-access\"");
    assert!(policy.network == Some(Network::None) && policy.allow.is_none());
    has(&notes, ["danger-full-access", "narrower"]);
}

#[test]
fn what_may_be_changed_is_listed() {
    let (policy, notes) = srt(
        "",
        "\"allowWrite\": [\"src/\", \"*.log\", \"~/.npm\", \"/tmp\"], \"denyWrite\": [\"src/.env\", \"src/**/*.pem\"]",
    );
    assert_eq!(policy.write, list(&["/tmp/**", "/home/user/**", "src", "src/**", "/home/me/.npm", "/home/me/.npm/**"]));
    assert!(protects(&policy, "src/.env") && protects(&policy, "**/*.pem"));
    has(&notes, ["allowWrite[1] \"*.log\"", "not kept"]);
    has(&notes, ["allowWrite[2] \"~/.npm\"", "-v /home/me/.npm"]);
    has(&notes, ["allowWrite[3] \"/tmp\"", "narrower"]);
    has(&notes, ["denyWrite[1]", "narrower: protected in every directory, as **/*.pem"]);
    // A rule that covers the project, or cannot be expressed, leaves nothing.
    for denied in ["~", "/", "a**b", "/home/*/p"] {
        let (policy, notes) = srt("", &format!("\"allowWrite\": [\".\"], \"denyWrite\": [\"{denied}\"]"));
        assert!(policy.read_only, "{denied}");
        has(&notes, ["denyWrite[0]", "no volume can be changed"]);
    }
}

#[test]
fn a_hidden_file_of_the_project_is_never_passed_over() {
    let (_, notes) = srt("", "\"denyRead\": [\"secrets\", \"**/.env\", \"~/.ssh\", \"a**b\"]");
    has(&notes, ["denyRead[0] \"secrets\": not kept", "--grate 'write_filter --conceal /home/me/p/secrets'"]);
    has(&notes, ["denyRead[1] \"**/.env\": not kept", "--conceal"]);
    has(&notes, ["denyRead[2] \"~/.ssh\": holds", "only what is mounted"]);
    has(&notes, ["denyRead[3]", "not kept"]);
    let (policy, notes) = srt("", "\"denyRead\": [\"~\"], \"allowRead\": [\"docs\", \"/opt/x\"]");
    let reads = policy.read.unwrap();
    assert!(reads.contains(&"docs/**".to_owned()) && reads.contains(&"/usr/**".to_owned()));
    assert!(!reads.iter().any(|path| path == "/**" || path.starts_with("/home/me")));
    has(&notes, ["denyRead[0]", "narrower"]);
    has(&notes, ["allowRead[1] \"/opt/x\"", "-v /opt/x:ro"]);
    let (policy, notes) = srt("", "\"denyRead\": [\"~\"], \"allowRead\": [\".\"]");
    assert!(policy.read.is_none());
    has(&notes, ["denyRead[0] \"~\": holds", "but for the project"]);
    let (_, notes) = import(Format::Srt, "{\"credentials\": {\"files\": [{\"path\": \".env\", \"mode\": \"mask\"}], \"envVars\": [{\"name\": \"T\", \"mode\": \"deny\"}]}}").unwrap();
    has(&notes, ["credentials.files[0] \".env\": not kept", "--conceal"]);
    has(&notes, ["credentials.files[0].mode \"mask\"", "not kept"]);
    has(&notes, ["credentials.envVars[0] \"T\": holds", "-e"]);
}

#[test]
fn a_denied_host_is_never_allowed() {
    let (policy, notes) = srt(
        "\"allowedDomains\": [\"a.example\", \"*.b.example\", \"c.example:443\", \"out * *\", \"*\", \"LocalHost\"], \
         \"deniedDomains\": [\"*:22\", \"x.b.example\", \"d.example\"]",
        "",
    );
    assert_eq!(policy.allow, list(&["a.example:80", "a.example:443", "c.example:443"]));
    has(&notes, ["allowedDomains[1] \"*.b.example\"", "narrower: left out"]);
    for (at, value) in [(3, "out * *"), (4, "*"), (5, "LocalHost")] {
        has(&notes, [&format!("allowedDomains[{at}] \"{value}\""), "not kept"]);
    }
    for denied in [
        "\"deniedDomains\": [\"93.184.216.34\"]",
        "\"deniedDomains\": [\"a b\"]",
        "\"deniedResolvedAddresses\": [\"93.0.0.0/8\"]",
    ] {
        let (policy, notes) = srt(&format!("\"allowedDomains\": [\"a.example\", \"192.0.2.1:443\"], {denied}"), "");
        assert_eq!(policy.allow, list(&["192.0.2.1:443"]), "{denied}");
        has(&notes, ["denied", "no host is allowed by its name"]);
    }
    let (policy, _) = srt("\"allowedDomains\": [\"a.example\"], \"deniedDomains\": [\"*\"]", "");
    assert_eq!((policy.allow, policy.network), (None, Some(Network::None)));
}

#[test]
fn rules_of_tools_are_those_of_the_sandbox() {
    let (policy, notes) = import(
        Format::Claude,
        "{\"permissions\": {\"allow\": [\"WebFetch(domain:a.example)\", \"Bash(ls:*)\", \"WebFetch\"], \
         \"deny\": [\"Edit(/vendor/**)\", \"Edit(.npmrc)\", \"Read(//etc/shadow)\", \"Read(.env)\", \"WebFetch(domain:b.example)\"], \
         \"additionalDirectories\": [\"../other\"]}, \
         \"sandbox\": {\"network\": {\"allowedDomains\": [\"b.example\"]}}, \"model\": \"m\"}",
    )
    .unwrap();
    assert_eq!(policy.allow, list(&["a.example"]));
    assert!(protects(&policy, "vendor") && protects(&policy, "**/.npmrc"));
    for (key, what) in [
        ("permissions.allow[1] Bash(ls:*)", "not kept"),
        ("permissions.allow[2] WebFetch", "not kept"),
        ("permissions.deny[2] Read(//etc/shadow)", "holds"),
        ("permissions.deny[3] Read(.env)", "not kept"),
        ("permissions.additionalDirectories[0]", "-v /home/me/other"),
        ("sandbox.enabled", "narrower"),
        ("model", "not kept"),
    ] {
        has(&notes, [key, what]);
    }
}

#[test]
fn rules_of_the_users_settings_are_about_the_project() {
    let mut draft = Draft::new(Places::at("/home/me/p", "/home/me").based("/home/me/.claude"));
    let text = "{\"permissions\": {\"allow\": [\"Edit(src/**)\"], \"deny\": [\"Read(.env)\", \"Read(./keys/**)\", \
                \"Edit(*.lock)\", \"Edit(/vendor)\", \"Edit(~/p/ci/**)\", \"Read(//etc/shadow)\"]}, \
                \"sandbox\": {\"filesystem\": {\"denyRead\": [\"own\"]}}}";
    claude::read(&Source { name: "f", text }, &mut draft).unwrap();
    let policy = Policy::parse("p", &policy_text(&draft, "f").unwrap()).unwrap();
    let notes: Vec<_> = draft.notes().map(ToString::to_string).collect();
    assert!(["**/*.lock", "vendor", "ci"].iter().all(|name| protects(&policy, name)), "{:?}", policy.protect);
    has(&notes, ["permissions.deny[0] Read(.env)", "not kept"]);
    has(&notes, ["permissions.deny[1] Read(./keys/**)", "--conceal /home/me/p/keys"]);
    has(&notes, ["permissions.deny[5] Read(//etc/shadow)", "holds"]);
    has(&notes, ["sandbox.filesystem.denyRead[0] \"own\"", "holds"]);
    assert!(!notes.iter().any(|note| note.contains("permissions.allow")), "{notes:?}");
}

#[test]
fn each_unknown_key_is_named() {
    let (_, notes) =
        import(Format::Srt, "{\"new\": 1, \"network\": {\"newer\": {\"a\": 1}}, \"allowPty\": false}").unwrap();
    has(&notes, ["new: not kept", "unknown"]);
    has(&notes, ["network.newer: not kept", "unknown"]);
    assert_eq!(notes.len(), 2, "{notes:?}");
    let (_, notes) = codex(
        "model = 1\n[permissions.a]\nnew = 1\n[permissions.a.network]\nnewer = 1\n[permissions.a.filesystem]\nnewest = true",
    );
    for key in ["model", "permissions.a.new", "permissions.a.network.newer", "permissions.a.filesystem.newest"] {
        has(&notes, [&format!("{key}: not kept"), ""]);
    }
}

#[test]
fn profiles_of_codex() {
    let (policy, notes) = codex(
        "default_permissions = \"w\"\n[permissions.base]\nextends = \":workspace\"\n[permissions.base.filesystem]\n\"~/.ssh\" = \"none\"\n\
         [permissions.w]\nextends = \"base\"\n[permissions.w.filesystem.\":workspace_roots\"]\ndocs = \"read\"\n\"docs/out\" = \"write\"\n\
         \"**/*.env\" = \"deny\"\n[permissions.w.network]\nenabled = true\n[permissions.w.network.domains]\n\"**.a.example\" = \"allow\"\n\
         \"b.example\" = \"deny\"",
    );
    assert_eq!(policy.allow, list(&["a.example", "*.a.example"]));
    assert!(policy.write.is_none() && policy.read.is_none() && !policy.read_only);
    assert!([".git", ".codex", "docs", "**/*.env"].iter().all(|name| protects(&policy, name)));
    has(&notes, ["\"~/.ssh\"", "holds"]);
    has(&notes, ["**/*.env", "--conceal"]);
    has(&notes, ["docs/out: narrower", "docs is protected"]);
    has(&notes, ["permissions.base: not kept", "the profile that is used is w"]);
    // A file that is not named cannot be read.
    let (policy, _) = codex(
        "[permissions.w.filesystem]\n\":minimal\" = \"read\"\n\":workspace_roots\" = { src = \"write\", docs = \"read\" }",
    );
    assert_eq!(policy.write, list(&["/tmp/**", "/home/user/**", "src", "src/**"]));
    assert!(policy.read.unwrap().contains(&"docs/**".to_owned()));
    let (policy, notes) = codex(
        "[permissions.w]\nextends = \":read-only\"\n[permissions.w.network]\nenabled = true\nmode = \"limited\"\ndomains = { \"a.example\" = \"allow\" }",
    );
    assert!(policy.read_only && policy.read.is_none() && policy.allow.is_none());
    has(&notes, ["network.mode \"limited\"", "narrower"]);
    let (policy, _) = codex("sandbox_mode = \"workspace-write\"\n[sandbox_workspace_write]\nnetwork_access = true");
    assert!(policy.network == Some(Network::Host) && protects(&policy, ".git"));
}

#[test]
fn mistakes_have_places() {
    for (format, text, wanted) in [
        (
            Format::Srt,
            "{\"network\":\n {\"allowedDomains\": 7}}",
            "f:2:21: network.allowedDomains: invalid type: integer `7`, expected a list",
        ),
        (Format::Srt, "{\"filesystem\": {\"denyRead\": [1]}}", "f:1:30: filesystem.denyRead[0]: invalid type"),
        (Format::Srt, "{\"network\": {}", "f:1:14: EOF while parsing an object"),
        (Format::Srt, "{} {}", "f:1:4: trailing characters"),
        (Format::Claude, "[]", "f:1:"),
        (Format::Claude, "{\"sandbox\": null}", "f:1:16: sandbox: invalid type: null"),
        (
            Format::Codex,
            "sandbox_mode = \"workspace\"",
            "f:1:16: sandbox_mode: must be one of read-only, workspace-write, danger-full-access",
        ),
        (
            Format::Codex,
            "[permissions.w.filesystem]\n\"/a\" = \"wirte\"",
            "f:2:8: permissions.w.filesystem./a: must be one of write, read, deny",
        ),
        (Format::Codex, "[permissions.w.filesystem]\n\"/a\" = 1.5", "f:2:8: permissions.w.filesystem./a: invalid type"),
        (
            Format::Codex,
            "[permissions.w]\nextends = \"w\"",
            "f: permissions.w: the profiles extend one another in a circle",
        ),
        (Format::Codex, "default_permissions = \"w\"", "f: permissions.w: there is no such profile"),
        (Format::Codex, "permissions = 1", "f:1:15: permissions: invalid type"),
    ] {
        let said = why(format, text);
        assert!(said.starts_with(wanted), "{text}: {said}");
    }
    for (format, text) in [
        (Format::Srt, format!("{{\"a\": {}", "[".repeat(100_000))),
        (Format::Srt, format!("{{\"network\": {}", "{\"a\":".repeat(100_000))),
        (Format::Codex, format!("a = {}", "[".repeat(100_000))),
        (Format::Codex, format!("[{}a]", "a.".repeat(100_000))),
    ] {
        assert!(why(format, &text).starts_with("f:1:"));
    }
}

#[test]
fn the_format_is_what_the_keys_say() {
    let of = |text: &str| detected(&Source { name: "f", text });
    assert_eq!(of("\n {\"sandbox\": {}}").unwrap(), Format::Claude);
    assert_eq!(of("{\"permissions\": {}, \"network\": {}}").unwrap(), Format::Claude);
    assert_eq!(of("{\"filesystem\": {}}").unwrap(), Format::Srt);
    assert_eq!(of("# c\nsandbox_mode = 'read-only'").unwrap(), Format::Codex);
    for text in ["{}", "", "a = 1", "{\"a\": {\"network\": 1}}"] {
        assert!(of(text).unwrap_err().to_string().contains("has no settings of a sandbox"), "{text}");
    }
    assert!(of("{\"network\"").unwrap_err().to_string().starts_with("f:1:"));
}
