//! `lind-boot inspect`: describes a file, for people and programs.

use lind_abi::NR_ANY;
use lind_engine::code::manifest::{Role, call_name};
use lind_engine::{CodeStore, Engine, Entry, Inspection, ModuleFacts, Seal};
use lind_kernel::text::shown;
use serde_json::{Value, json};

use crate::cli::tools::Inspect;
use crate::failure::{self, Failure};
use crate::plan::found;

/// Prints the description of each file.
pub fn print(options: &Inspect) -> std::result::Result<(), Failure> {
    let engine = Engine::new(CodeStore::open()?, false)?;
    let mut found = Vec::new();
    for file in &options.files {
        let path = found::program(file, options.root.as_ref())?;
        found.push((path.display().to_string(), engine.inspect(&path)?));
    }
    if options.json {
        failure::print_json(&found.iter().map(|(file, about)| as_json(file, about)).collect())
    } else {
        failure::print(&found.iter().map(|(file, about)| as_text(file, about)).collect::<Vec<_>>().join("\n"))
    }
}

fn kind(module: &ModuleFacts) -> &'static str {
    match module.entry {
        Entry::None => "program",
        Entry::Handle => "grate",
        Entry::PassFptr => "grate written for Lind",
    }
}

fn seal(seal: Option<Seal>) -> &'static str {
    match seal {
        None => "source",
        Some(Seal::Valid) => "valid",
        Some(Seal::Invalid) => "invalid",
        Some(Seal::OtherVersion) => "other version",
    }
}

fn as_text(file: &str, about: &Inspection) -> String {
    let compiled = match about.seal {
        None => format!("no: compiled when it is first run, as {}", about.engine),
        Some(Seal::Valid) => format!("by you, as {}", about.engine),
        Some(Seal::Invalid) => {
            "not by you, or changed since: it does not run, and its contents are not shown".to_owned()
        }
        Some(Seal::OtherVersion) => format!("by another version: it does not run as {}", about.engine),
    };
    let mut text = format!("{}\n  compiled  {compiled}\n", shown(file));
    let Some(module) = &about.module else { return text };
    text += &format!("  kind      {}\n", kind(module));
    text += &format!("  imports   {}\n", shown(module.imports.join(" ")));
    text += &format!("  memory    4 GiB of addresses; code's data below {:#x}\n", module.heap_base);
    text += &format!("  forks     {}\n", if module.forks() { "yes" } else { "no" });
    if module.entry == Entry::None {
        return text;
    }
    text += &format!(
        "  filter    {}\n",
        if module.filters { "yes: a function that only computes decides some calls" } else { "no" }
    );
    match module.manifest.composes() {
        Some(0) => text += "  composes  one %{ ... %} or more\n",
        Some(count) => text += &format!("  composes  {count} %{{ ... %}}\n"),
        None => {}
    }
    if !module.manifest.declared() {
        text += "  manifest  none: it may handle any call\n";
        return text;
    }
    let mut at = "manifest";
    for role in [Role::Answers, Role::Alters, Role::Observes, Role::Follows] {
        let calls: Vec<_> =
            module.manifest.entries().filter(|(_, known)| *known == role).map(|(nr, _)| call_name(nr)).collect();
        if !calls.is_empty() {
            text += &format!("  {at:<9} {} {}\n", role.word(), calls.join(" "));
            at = "";
        }
    }
    text
}

fn as_json(file: &str, about: &Inspection) -> Value {
    let mut value = json!({ "file": file, "compiled": seal(about.seal), "engine": about.engine });
    let Some(module) = &about.module else { return value };
    let calls: Vec<_> = module
        .manifest
        .entries()
        .map(|(nr, role)| json!({ "number": (nr != NR_ANY).then_some(nr), "name": call_name(nr), "role": role.word() }))
        .collect();
    let more = json!({
        "kind": match module.entry { Entry::None => "program", Entry::Handle => "grate", Entry::PassFptr => "lind-grate" },
        "imports": module.imports, "heap_base": module.heap_base, "forks": module.forks(), "filter": module.filters,
        "composes": module.manifest.composes(),
        "manifest": if module.manifest.declared() { Value::from(calls) } else { Value::Null },
    });
    if let (Some(value), Value::Object(more)) = (value.as_object_mut(), more) {
        value.extend(more);
    }
    value
}
