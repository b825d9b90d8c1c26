//! Finds the functions that can have a fork below them, and so the calls that are sites.
//!
//! A call through a table or a reference may reach every function of its type to which the module
//! refers other than by calls.
//!
//! A call that is followed by `unreachable` does not return: error messages, `exit`. Control never
//! comes back to a frame that waits there, unless it catches an exception. Such a frame need not be
//! kept, nor those below it, until one that catches. So a function that comes to a fork only in
//! such ways does not make calls of it sites.

use std::collections::{BTreeSet, HashMap, HashSet};

use anyhow::{Result, ensure};
use wasmparser::{
    ConstExpr, Element, ElementItems, FuncType, Global, Imports, ModuleArity, Operator, Table, TableInit, TypeRef,
};

use crate::code;
use crate::module::{Module, id};
use crate::types::Types;

use super::Fork;
use super::tail::Tails;

/// The class of types that differ by more than their shape; they count as able to call each other.
const OTHER: u32 = 0;

/// The furthest that a call may come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Reach {
    /// No fork.
    Nothing,
    /// A fork, but the caller goes on only by catching an exception.
    Gone,
    /// A fork, after which the caller goes on.
    Back,
}

/// The facts about the whole module that the pass needs.
pub struct CallGraph {
    /// The imports `lind.fork`.
    pub forks: HashSet<u32>,
    /// The number of calls in the function that has the most.
    pub most_calls: usize,
    /// The places in the code section where tables, or globals that hold references, are changed.
    pub changes: Vec<usize>,
    /// The calls that may come to a fork and go on, by their place in the code section.
    sites: HashSet<usize>,
    /// The sites whose function goes on after an exception.
    tried: HashSet<usize>,
    /// The calls that may come to a fork after which the callee goes on, but not the caller.
    last: HashSet<usize>,
    /// The functions that may come to a fork and go on, with callers that do not.
    pub called_last: BTreeSet<u32>,
    /// The reach of each function, imported ones first.
    reach: Vec<Reach>,
    /// Defined functions that contain sites.
    takes_part: Vec<bool>,
    /// Functions with references among their results.
    give_references: HashSet<u32>,
    classes: Vec<u32>,
    class_reach: HashMap<u32, Reach>,
    imported: usize,
}

/// The callee of a call.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Callee {
    Function(u32),
    Class(u32),
}

/// A call.
struct Call {
    /// Its place in the code section.
    at: usize,
    callee: Callee,
    /// This function does nothing behind it.
    tail: bool,
    /// The call does not return.
    last: bool,
    /// An exception may be caught in this function.
    tried: bool,
}

impl CallGraph {
    /// Reads all functions. None if the module needs no change.
    pub fn find(module: &Module, types: &Types, mode: Fork) -> Result<Option<CallGraph>> {
        let (imports, forks) = imports(module, types)?;
        if forks.is_empty() && mode == Fork::Auto {
            return Ok(None);
        }
        let first = |function| match function < imports && (mode == Fork::Always || forks.contains(&number(function))) {
            true => Reach::Back,
            false => Reach::Nothing,
        };
        let mut graph = CallGraph {
            reach: (0..types.function_count()).map(first).collect(),
            forks,
            most_calls: 0,
            changes: Vec::new(),
            sites: HashSet::new(),
            tried: HashSet::new(),
            last: HashSet::new(),
            called_last: BTreeSet::new(),
            takes_part: Vec::new(),
            give_references: give_references(types),
            classes: classes(types),
            class_reach: HashMap::new(),
            imported: imports,
        };
        let mut referred = referred(module)?;
        let calls = graph.read(module, types, &mut referred)?;
        ensure!(
            !referred.iter().any(|function| graph.forks.contains(function)),
            "lind.fork is used otherwise than by calling it; put a function around it"
        );
        graph.spread(&calls, &referred, types);
        for calls in &calls {
            let before = graph.sites.len();
            for call in calls {
                if let Some(callee) = graph.last(call) {
                    graph.called_last.insert(callee);
                    graph.last.insert(call.at);
                } else if graph.makes_site(call) {
                    graph.sites.insert(call.at);
                    graph.tried.extend(call.tried.then_some(call.at));
                }
            }
            graph.takes_part.push(graph.sites.len() > before);
        }
        Ok((!graph.sites.is_empty() || !graph.called_last.is_empty()).then_some(graph))
    }

    /// Whether there is a site at this place of the code section.
    pub fn is_site(&self, at: usize) -> bool {
        self.sites.contains(&at)
    }

    /// Whether the function of a site may catch an exception there.
    pub fn is_tried(&self, at: usize) -> bool {
        self.tried.contains(&at)
    }

    /// Whether the callee at this place may be left at a fork, and the caller does not go on.
    pub fn is_last(&self, at: usize) -> bool {
        self.last.contains(&at)
    }

    /// Whether a function is imported.
    pub fn is_import(&self, function: u32) -> bool {
        (function as usize) < self.imported
    }

    /// Whether a function may come to a fork when it is called.
    pub fn may_fork(&self, function: u32) -> bool {
        self.reach.get(function as usize).is_some_and(|reach| *reach != Reach::Nothing)
    }

    /// Whether a defined function contains sites.
    pub fn has_sites(&self, function: u32) -> bool {
        (function as usize).checked_sub(self.imported).and_then(|f| self.takes_part.get(f)) == Some(&true)
    }

    fn of(&self, callee: Callee) -> Reach {
        match callee {
            Callee::Function(function) => self.reach.get(function as usize).copied().unwrap_or(Reach::Nothing),
            Callee::Class(OTHER) => self.class_reach.values().copied().max().unwrap_or(Reach::Nothing),
            Callee::Class(class) => {
                let of = |class| self.class_reach.get(&class).copied().unwrap_or(Reach::Nothing);
                of(class).max(of(OTHER))
            }
        }
    }

    /// The effect of a call on the function that it is in.
    fn through(&self, call: &Call) -> Reach {
        match self.of(call.callee) {
            Reach::Back if !call.tail && !call.tried && call.last && self.is_plain(call.callee) => Reach::Gone,
            // Once it has caught, it may return.
            Reach::Gone if call.tried => Reach::Back,
            reach => reach,
        }
    }

    fn is_plain(&self, callee: Callee) -> bool {
        matches!(callee, Callee::Function(function) if !self.give_references.contains(&function))
    }

    /// The callee, if it goes on after a fork and the caller does not.
    fn last(&self, call: &Call) -> Option<u32> {
        let gone = self.of(call.callee) == Reach::Back && self.through(call) == Reach::Gone;
        match call.callee {
            Callee::Function(function) if gone && self.is_defined_or_fork(call) => Some(function),
            _ => None,
        }
    }

    fn makes_site(&self, call: &Call) -> bool {
        !call.tail && self.is_defined_or_fork(call) && self.through(call) == Reach::Back
    }

    /// With `--fork=always` imports count as forks, but no exception comes out of them.
    fn is_defined_or_fork(&self, call: &Call) -> bool {
        match call.callee {
            Callee::Function(function) => !self.is_import(function) || self.forks.contains(&function),
            Callee::Class(_) => true,
        }
    }

    fn class(&self, ty: u32) -> Callee {
        Callee::Class(self.classes.get(ty as usize).copied().unwrap_or(OTHER))
    }

    fn read(&mut self, module: &Module, types: &Types, referred: &mut HashSet<u32>) -> Result<Vec<Vec<Call>>> {
        let references = reference_globals(module)?;
        let mut all = Vec::new();
        let Some(section) = module.body(id::CODE) else {
            return Ok(all);
        };
        for (function, (_, body)) in (self.imported..).zip(code::functions(section)?) {
            let ty = types.type_index_of_function(number(function)).and_then(|ty| types.function_type(ty));
            let mut tails = Tails::new(types, ty.map_or(&[], FuncType::results));
            let mut calls: Vec<Call> = Vec::new();
            // For each open block, the number of try_tables that are open with it.
            let mut open = vec![0];
            let mut after_call = false;
            let mut reader = body.get_operators_reader()?;
            while !reader.eof() {
                let (op, at) = reader.read_with_offset()?;
                if let (true, Operator::Unreachable, Some(call)) = (after_call, &op, calls.last_mut()) {
                    call.last = true;
                }
                let tries = open.last().copied().unwrap_or(0);
                let found = calls.len();
                let mut add =
                    |callee, tail| calls.push(Call { at, callee, tail, last: false, tried: tries > 0 && !tail });
                let callee = match op {
                    Operator::Call { function_index } => types.type_index_of_function(function_index),
                    Operator::CallIndirect { type_index, .. } | Operator::CallRef { type_index } => Some(type_index),
                    _ => None,
                };
                match callee.and_then(|ty| types.function_type(ty)) {
                    Some(ty) => tails.call(found, ty.results()),
                    None => tails.step(&op),
                }
                match op {
                    Operator::Call { function_index } => add(Callee::Function(function_index), false),
                    Operator::ReturnCall { function_index } => add(Callee::Function(function_index), true),
                    Operator::CallIndirect { type_index, .. } | Operator::CallRef { type_index } => {
                        add(self.class(type_index), false)
                    }
                    Operator::ReturnCallIndirect { type_index, .. } | Operator::ReturnCallRef { type_index } => {
                        add(self.class(type_index), true)
                    }
                    Operator::RefFunc { function_index } => {
                        referred.insert(function_index);
                    }
                    Operator::TableSet { .. }
                    | Operator::TableGrow { .. }
                    | Operator::TableFill { .. }
                    | Operator::TableCopy { .. }
                    | Operator::TableInit { .. } => self.changes.push(at),
                    Operator::GlobalSet { global_index } if references.contains(&global_index) => self.changes.push(at),
                    Operator::Block { .. } | Operator::Loop { .. } | Operator::If { .. } => open.push(tries),
                    Operator::TryTable { .. } => open.push(tries + 1),
                    Operator::End => {
                        open.pop();
                    }
                    _ => {}
                }
                after_call = calls.len() > found;
            }
            for found in tails.found() {
                calls[found].tail |= !calls[found].tried;
            }
            self.most_calls = self.most_calls.max(calls.len());
            all.push(calls);
        }
        Ok(all)
    }

    /// Spreads from the imports that fork to all functions that reach them.
    fn spread(&mut self, calls: &[Vec<Call>], referred: &HashSet<u32>, types: &Types) {
        let mut callers: HashMap<Callee, Vec<(usize, &Call)>> = HashMap::new();
        for (function, calls) in (self.imported..).zip(calls) {
            for call in calls {
                callers.entry(call.callee).or_default().push((function, call));
            }
        }
        let mut work: Vec<usize> = (0..self.reach.len()).filter(|f| self.reach[*f] != Reach::Nothing).collect();
        while let Some(function) = work.pop() {
            let mut changed = vec![Callee::Function(number(function))];
            if referred.contains(&number(function)) {
                let ty = types.type_index_of_function(number(function));
                let class = ty.and_then(|ty| self.classes.get(ty as usize)).copied().unwrap_or(OTHER);
                let known = self.class_reach.entry(class).or_insert(Reach::Nothing);
                if *known < self.reach[function] {
                    *known = self.reach[function];
                    match class {
                        OTHER => changed.extend(callers.keys().filter(|callee| matches!(callee, Callee::Class(_)))),
                        _ => changed.extend([Callee::Class(class), Callee::Class(OTHER)]),
                    }
                }
            }
            for (caller, call) in changed.iter().filter_map(|callee| callers.get(callee)).flatten() {
                let reach = self.through(call);
                if self.reach[*caller] < reach {
                    self.reach[*caller] = reach;
                    work.push(*caller);
                }
            }
        }
    }
}

fn number(function: usize) -> u32 {
    u32::try_from(function).unwrap_or(u32::MAX)
}

/// The number of imported functions, and those of them that are `lind.fork`.
fn imports(module: &Module, types: &Types) -> Result<(usize, HashSet<u32>)> {
    let (mut count, mut forks) = (0, HashSet::new());
    for (_, imports) in module.entries::<Imports>(id::IMPORT)? {
        for import in imports {
            let import = import?.1;
            let (TypeRef::Func(ty) | TypeRef::FuncExact(ty)) = import.ty else { continue };
            if (import.module, import.name) == ("lind", "fork") {
                let expected = FuncType::new([], [wasmparser::ValType::I32]);
                ensure!(types.plain_function(ty) == Some(&expected), "lind.fork has another type than () -> i32");
                forks.insert(number(count));
            }
            count += 1;
        }
    }
    Ok((count, forks))
}

/// A number for each shape of function type.
fn classes(types: &Types) -> Vec<u32> {
    let mut known: HashMap<&FuncType, u32> = HashMap::new();
    let class = |index: usize| match types.plain_function(number(index)) {
        Some(ty) if ty.params().iter().chain(ty.results()).all(|ty| !is_concrete(*ty)) => {
            let next = number(known.len() + 1);
            *known.entry(ty).or_insert(next)
        }
        _ => OTHER,
    };
    (0..types.count()).map(class).collect()
}

fn give_references(types: &Types) -> HashSet<u32> {
    let gives = |function: &u32| {
        let ty = types.type_index_of_function(*function).and_then(|ty| types.function_type(ty));
        ty.is_some_and(|ty| ty.results().iter().any(|ty| ty.is_reference_type()))
    };
    (0..number(types.function_count())).filter(gives).collect()
}

fn is_concrete(ty: wasmparser::ValType) -> bool {
    matches!(ty, wasmparser::ValType::Ref(ty) if ty.is_concrete_type_ref())
}

/// The functions that tables and globals refer to from the start.
fn referred(module: &Module) -> Result<HashSet<u32>> {
    let mut found = HashSet::new();
    for (_, element) in module.entries::<Element>(id::ELEMENT)? {
        match element.items {
            ElementItems::Functions(list) => {
                for function in list {
                    found.insert(function?);
                }
            }
            ElementItems::Expressions(_, list) => {
                for expression in list {
                    in_expression(&expression?, &mut found)?;
                }
            }
        }
    }
    for (_, table) in module.entries::<Table>(id::TABLE)? {
        if let TableInit::Expr(expression) = table.init {
            in_expression(&expression, &mut found)?;
        }
    }
    for (_, global) in module.entries::<Global>(id::GLOBAL)? {
        in_expression(&global.init_expr, &mut found)?;
    }
    Ok(found)
}

fn in_expression(expression: &ConstExpr, found: &mut HashSet<u32>) -> Result<()> {
    for op in expression.get_operators_reader() {
        if let Operator::RefFunc { function_index } = op? {
            found.insert(function_index);
        }
    }
    Ok(())
}

/// The mutable globals that hold references.
fn reference_globals(module: &Module) -> Result<HashSet<u32>> {
    let mut all = Vec::new();
    for (_, imports) in module.entries::<Imports>(id::IMPORT)? {
        for import in imports {
            if let TypeRef::Global(ty) = import?.1.ty {
                all.push(ty);
            }
        }
    }
    all.extend(module.entries::<Global>(id::GLOBAL)?.into_iter().map(|(_, global)| global.ty));
    Ok((0..)
        .zip(all)
        .filter(|(_, ty)| ty.mutable && ty.content_type.is_reference_type())
        .map(|(index, _)| index)
        .collect())
}
