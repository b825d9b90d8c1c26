//! Which functions can have a fork below them, and so which calls are sites.
//!
//! A call through a table or a reference may reach every function of its type that the module refers to otherwise
//! than by calling it. That a function *reaches* fork says that calls of it are sites; one that only passes it on by
//! `return_call` leaves no frame and has no sites of its own.

use std::collections::{HashMap, HashSet};

use anyhow::{Result, ensure};
use wasmparser::{
    ConstExpr, Element, ElementItems, FuncType, Global, Imports, ModuleArity, Operator, Table, TableInit, TypeRef,
};

use crate::code;
use crate::module::{Module, id};
use crate::types::Types;

use super::Fork;

/// The class of types that are told apart by more than their shape; they count as able to call each other.
const OTHER: u32 = 0;

/// What the pass has to know of the whole module.
pub struct CallGraph {
    /// The imports `lind.fork`.
    pub forks: HashSet<u32>,
    /// Functions, imported ones first: whether a call may come to a fork.
    reaches: Vec<bool>,
    /// Defined functions that may contain sites.
    takes_part: Vec<bool>,
    /// How many calls there are in the function that has the most.
    pub most_calls: usize,
    /// Where in the code section tables, or globals that hold references, are changed.
    pub changes: Vec<usize>,
    classes: Vec<u32>,
    reached_classes: HashSet<u32>,
    imported: usize,
}

/// What a function calls.
#[derive(Default)]
struct Calls {
    functions: HashSet<u32>,
    /// The same for calls by `return_call`.
    tails: HashSet<u32>,
    classes: HashSet<u32>,
    tail_classes: HashSet<u32>,
}

impl CallGraph {
    /// Looks at all functions. None if there is nothing to do.
    pub fn find(module: &Module, types: &Types, mode: Fork) -> Result<Option<CallGraph>> {
        let (imports, forks) = imports(module, types)?;
        if forks.is_empty() && mode == Fork::Auto {
            return Ok(None);
        }
        let mut graph = CallGraph {
            reaches: (0..types.function_count())
                .map(|f| f < imports && (mode == Fork::Always || forks.contains(&number(f))))
                .collect(),
            forks,
            takes_part: Vec::new(),
            most_calls: 0,
            changes: Vec::new(),
            classes: classes(types),
            reached_classes: HashSet::new(),
            imported: imports,
        };
        let mut referred = referred(module)?;
        let calls = graph.read(module, &mut referred)?;
        ensure!(
            !referred.iter().any(|function| graph.forks.contains(function)),
            "lind.fork is used otherwise than by calling it; put a function around it"
        );
        graph.spread(&calls, &referred, types);
        graph.takes_part = calls
            .iter()
            .map(|calls| {
                calls.functions.iter().any(|f| graph.is_site_of(*f))
                    || calls.classes.iter().any(|class| graph.reaches_class(*class))
            })
            .collect();
        Ok(graph.takes_part.contains(&true).then_some(graph))
    }

    /// Whether an instruction is a call, not a `return_call`, that may come to a fork.
    pub fn is_site(&self, op: &Operator) -> bool {
        match op {
            Operator::Call { function_index } => self.is_site_of(*function_index),
            Operator::CallIndirect { type_index, .. } | Operator::CallRef { type_index } => {
                self.reaches_class(self.class(*type_index))
            }
            _ => false,
        }
    }

    /// With `--fork=always` imports count as forks, but nothing comes back out of them by an exception.
    fn is_site_of(&self, function: u32) -> bool {
        let index = function as usize;
        self.reaches.get(index) == Some(&true) && (index >= self.imported || self.forks.contains(&function))
    }

    /// Whether a function is imported.
    pub fn is_import(&self, function: u32) -> bool {
        (function as usize) < self.imported
    }

    /// Whether a function may come to a fork when it is called.
    pub fn may_fork(&self, function: u32) -> bool {
        self.reaches.get(function as usize) == Some(&true)
    }

    /// Whether a defined function may contain sites.
    pub fn has_sites(&self, function: u32) -> bool {
        (function as usize).checked_sub(self.imported).and_then(|f| self.takes_part.get(f)) == Some(&true)
    }

    fn reaches_class(&self, class: u32) -> bool {
        self.reached_classes.contains(&class)
            || (class == OTHER && !self.reached_classes.is_empty())
            || self.reached_classes.contains(&OTHER)
    }

    fn class(&self, ty: u32) -> u32 {
        self.classes.get(ty as usize).copied().unwrap_or(OTHER)
    }

    fn read(&mut self, module: &Module, referred: &mut HashSet<u32>) -> Result<Vec<Calls>> {
        let references = reference_globals(module)?;
        let mut all = Vec::new();
        let Some(section) = module.body(id::CODE) else {
            return Ok(all);
        };
        for (_, body) in code::functions(section)? {
            let (mut calls, mut count) = (Calls::default(), 0);
            let mut reader = body.get_operators_reader()?;
            while !reader.eof() {
                let (op, at) = reader.read_with_offset()?;
                match op {
                    Operator::Call { function_index } => {
                        calls.functions.insert(function_index);
                        count += 1;
                    }
                    Operator::ReturnCall { function_index } => {
                        calls.tails.insert(function_index);
                    }
                    Operator::CallIndirect { type_index, .. } | Operator::CallRef { type_index } => {
                        calls.classes.insert(self.class(type_index));
                        count += 1;
                    }
                    Operator::ReturnCallIndirect { type_index, .. } | Operator::ReturnCallRef { type_index } => {
                        calls.tail_classes.insert(self.class(type_index));
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
                    _ => {}
                }
            }
            self.most_calls = self.most_calls.max(count);
            all.push(calls);
        }
        Ok(all)
    }

    /// From the imports that fork to all who reach them.
    fn spread(&mut self, calls: &[Calls], referred: &HashSet<u32>, types: &Types) {
        let mut callers: HashMap<u32, Vec<u32>> = HashMap::new();
        let mut class_callers: HashMap<u32, Vec<u32>> = HashMap::new();
        for (function, calls) in (self.imported..).zip(calls) {
            for callee in calls.functions.iter().chain(&calls.tails) {
                callers.entry(*callee).or_default().push(number(function));
            }
            for class in calls.classes.iter().chain(&calls.tail_classes) {
                class_callers.entry(*class).or_default().push(number(function));
            }
        }
        let mut work: Vec<u32> = (0..self.reaches.len()).filter(|f| self.reaches[*f]).map(number).collect();
        while let Some(function) = work.pop() {
            let mut found: Vec<u32> = callers.get(&function).cloned().unwrap_or_default();
            if referred.contains(&function) {
                let ty = types.type_index_of_function(function);
                let class = ty.map_or(OTHER, |ty| self.class(ty));
                if self.reached_classes.insert(class) {
                    let of = |class| class_callers.get(&class).cloned().unwrap_or_default();
                    match class {
                        OTHER => found.extend(class_callers.values().flatten()),
                        class => found.extend(of(class).into_iter().chain(of(OTHER))),
                    }
                }
            }
            for caller in found {
                if !std::mem::replace(&mut self.reaches[caller as usize], true) {
                    work.push(caller);
                }
            }
        }
    }
}

fn number(function: usize) -> u32 {
    u32::try_from(function).unwrap_or(u32::MAX)
}

/// How many functions are imported, and which of them are `lind.fork`.
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
