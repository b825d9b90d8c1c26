//! `lind-boot explain`: shows where each system call of a program would go, from the descriptions
//! that the grates of the line give of themselves. No program is run.

use std::collections::{BTreeMap, BTreeSet};

use lind_abi::{MISSING, SYSCALLS, Syscall};
use lind_engine::code::manifest::Role;
use lind_engine::{CodeStore, Engine};
use lind_kernel::text::shown;
use serde_json::{Value, json};

use crate::cli::tools::Explain;
use crate::config;
use crate::failure::{self, Failure};
use crate::plan::grates::Folders;
use crate::plan::said::{declared, words};
use crate::plan::stack;
use crate::plan::typed::{Finder, Line, Node};

/// A grate on the route of a call, and what it may do with the call.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// A grate with its role, from its manifest and its options.
    Grate { name: String, role: String },
    /// A composer: its declared role, the condition under which the call enters its stacks, and the
    /// stacks.
    Composer { name: String, options: String, role: Option<String>, when: String, stacks: Vec<Vec<Step>> },
}

/// Prints the routes of calls.
pub fn print(options: &Explain) -> Result<(), Failure> {
    let engine = Engine::new(CodeStore::open()?, false)?;
    let root = config::root(options.root.as_ref())?;
    let file = options.stack.as_deref().map(stack::read).transpose()?.unwrap_or_default();
    let grates = Folders::new(&options.grates);
    let finder = Finder { root: &root, grates: &grates, named: &options.grates, engine: &engine };
    let line = finder.line(finder.steps(&file)?, &options.program)?;
    let routes = routes(&line);
    if options.json { failure::print_json(&as_json(&line, &routes)) } else { failure::print(&as_text(&line, &routes)) }
}

/// Calls with the same route, in the order of the table.
type Routes = BTreeMap<(Vec<Step>, bool), Vec<&'static Syscall>>;

fn routes(line: &Line) -> Routes {
    let mut rows: Vec<_> = SYSCALLS.iter().chain(MISSING).collect();
    rows.sort_by_key(|row| row.nr);
    let mut routes = Routes::new();
    for row in rows {
        let steps = route(&line.chain, row);
        // A call that neither a grate nor the kernel knows is left out.
        if row.implemented || !steps.is_empty() {
            routes.entry((steps, row.implemented)).or_default().push(row);
        }
    }
    routes
}

/// The route of a call, from the program on: the grate that was started last comes first.
fn route(chain: &[Node], row: &'static Syscall) -> Vec<Step> {
    chain.iter().rev().filter_map(|node| step(node, row)).collect()
}

fn step(node: &Node, row: &'static Syscall) -> Option<Step> {
    if !node.stacks.is_empty() {
        return through(node, row);
    }
    let role = match (&node.said, &node.manifest) {
        (Some(said), manifest) => said.role(manifest.as_ref(), row.nr)?,
        (None, None) => "unknown: any call".to_owned(),
        (None, Some(manifest)) => words(declared(manifest, row.nr)?),
    };
    Some(Step::Grate { name: node.step.grate.clone(), role })
}

/// The step of a composer with a call.
fn through(node: &Node, row: &'static Syscall) -> Option<Step> {
    let stacks: Vec<_> = node.stacks.iter().map(|stack| route(stack, row)).collect();
    let (name, options) = (node.step.grate.clone(), node.options());
    let handled = !stacks.iter().all(Vec::is_empty);
    let own = node.manifest.as_ref().and_then(|manifest| manifest.role(row.nr));
    // Its role for any call is about the calls that enter.
    let sees = |role: Option<Role>| Some(Step::Grate { name: node.step.grate.clone(), role: words(role?) });
    let when = match &node.said {
        Some(said) => match if handled { &said.handled } else { &said.others }.get(&row.nr) {
            Some(Some(when)) if handled => when.clone(),
            Some(_) => return sees(own.or(Some(Role::Observes))),
            None => return sees(own.filter(|role| *role == Role::Follows)),
        },
        None if !handled => return sees(own),
        None => "if it matches".to_owned(),
    };
    let any = || node.manifest.as_ref()?.role_of_any();
    let role = own.or_else(any).map(words);
    Some(Step::Composer { name, options, role, when, stacks })
}

fn as_text(line: &Line, routes: &Routes) -> String {
    let mut text = format!("{}: from the program to the kernel\n", shown(&line.program));
    for name in trusted(&line.chain) {
        text += &format!("{name} declares nothing: it is trusted to only route calls and follow descriptors\n");
    }
    for note in notes(&line.chain) {
        text += &format!("{note}\n");
    }
    // The longest routes first: those are what one asks about.
    for ((steps, implemented), calls) in routes.iter().rev() {
        let names: Vec<_> = calls.iter().map(|row| row.name).collect();
        text += &format!("\n{}", wrapped(&names));
        print_steps(steps, 1, &mut text);
        text += &format!("    {}\n", if *implemented { "kernel" } else { "kernel: ENOSYS" });
    }
    text
}

/// The notes of the grates that hold for all calls.
fn notes(chain: &[Node]) -> Vec<String> {
    let own = |node: &Node| {
        let notes = node.said.iter().flat_map(|said| &said.notes);
        let mut notes: Vec<_> = notes.map(|note| format!("{}: {note}", node.step.grate)).collect();
        notes.extend(node.stacks.iter().flat_map(|stack| self::notes(stack)));
        notes
    };
    chain.iter().rev().flat_map(own).collect()
}

/// The composers without a manifest.
fn trusted(chain: &[Node]) -> BTreeSet<&str> {
    let of = |node: &Node| !node.stacks.is_empty() && node.manifest.is_none();
    let own = chain.iter().filter(|node| of(node)).map(|node| node.step.grate.as_str());
    own.chain(chain.iter().flat_map(|node| &node.stacks).flat_map(|stack| trusted(stack))).collect()
}

fn print_steps(steps: &[Step], depth: usize, text: &mut String) {
    let indent = "    ".repeat(depth);
    for step in steps {
        match step {
            Step::Grate { name, role } => *text += &format!("{indent}{}: {role}\n", shown(name)),
            Step::Composer { name, options, role, when, stacks } => {
                let line = format!("{name} {options}");
                let role = role.as_ref().map(|role| format!("{role}; ")).unwrap_or_default();
                let when = if when.is_empty() { "always" } else { when };
                *text += &format!("{indent}{}: {role}enters, {when}\n", shown(line.trim_end()));
                for stack in stacks {
                    *text += &format!("{indent}  %{{\n");
                    print_steps(stack, depth + 1, text);
                    *text += &format!("{indent}  %}}\n");
                }
            }
        }
    }
}

fn wrapped(names: &[&str]) -> String {
    const WIDTH: usize = 100;
    let mut text = String::new();
    let mut line = String::new();
    for name in names {
        if !line.is_empty() && line.len() + 1 + name.len() > WIDTH {
            text += &format!("{line}\n");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line += name;
    }
    text + &line + "\n"
}

fn as_json(line: &Line, routes: &Routes) -> Value {
    let groups: Vec<_> = routes
        .iter()
        .rev()
        .map(|((steps, implemented), calls)| {
            let names: Vec<_> = calls.iter().map(|row| row.name).collect();
            json!({ "calls": names, "route": steps_as_json(steps), "kernel": implemented })
        })
        .collect();
    json!({ "program": line.program, "trusted": trusted(&line.chain), "notes": notes(&line.chain), "routes": groups })
}

fn steps_as_json(steps: &[Step]) -> Vec<Value> {
    let one = |step: &Step| match step {
        Step::Grate { name, role } => json!({ "grate": name, "role": role }),
        Step::Composer { name, options, role, when, stacks } => {
            let inside: Vec<_> = stacks.iter().map(|steps| steps_as_json(steps)).collect();
            json!({ "grate": name, "options": options, "role": "routes", "declares": role, "when": when, "inside": inside })
        }
    };
    steps.iter().map(one).collect()
}
