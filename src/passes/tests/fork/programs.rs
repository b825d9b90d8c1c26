//! Random programs that compute much, call each other, throw and catch, fork everywhere, and end.

use std::fmt::Write;

/// xorshift.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random((seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        u32::try_from(self.0 >> 32).unwrap()
    }

    pub fn below(&mut self, limit: u32) -> u32 {
        self.next() % limit.max(1)
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(u32::try_from(list.len()).unwrap()) as usize]
    }
}

type Ty = &'static str;
/// The number by which the pass recognises that a callee may have been left.
const LEFT: i32 = -86;

const TYPES: [Ty; 5] = ["i32", "i64", "f32", "f64", "v128"];

struct Function {
    params: Vec<Ty>,
    results: Vec<Ty>,
}

struct Writer<'r> {
    random: &'r mut Random,
    functions: Vec<Function>,
    /// The function that is being written; it calls later ones, and itself.
    current: usize,
    locals: Vec<Ty>,
    /// Labels of blocks without results.
    labels: u32,
    open: Vec<u32>,
    /// Pieces that may still be written; they get simple then.
    budget: u32,
}

/// The text of a program with the entry `run`.
pub fn program(random: &mut Random) -> String {
    let count = 3 + random.below(4);
    let functions = (0..count).map(|index| {
        let params = (0..random.below(4)).map(|_| random.of(&TYPES)).collect();
        let results = if index == 0 { 0 } else { random.below(10) / 3 };
        Function { params, results: (0..results).map(|_| random.of(&TYPES)).collect() }
    });
    let functions: Vec<Function> = functions.collect();
    let mut text = r#"(module (import "lind" "fork" (func $fork (result i32)))
        (memory (export "memory") 4) (global (export "movable") i32 (i32.const 1))
        (global $at (export "at") (mut i32) (i32.const 1024)) (global $steps (mut i32) (i32.const 60))
        (global $mix (export "mix") (mut i64) (i64.const 1))
        (tag $empty) (tag $one (param i32)) (tag $two (param i64 i32))
        (func $dies (param i32) (result i64)
            (call $log (i32.add (local.get 0) (call $fork))) (call $log (call $fork)) (throw $one (local.get 0)))
        (func $log (param i32)
            (i32.store (global.get $at) (local.get 0))
            (global.set $mix (i64.add (i64.mul (global.get $mix) (i64.const 31)) (i64.extend_i32_s (local.get 0))))
            (global.set $at (i32.add (i32.const 1024) (i32.and (global.get $at) (i32.const 0x3ffc)))))"#
        .to_owned();
    let table: String = (0..count).map(|index| format!(" $f{index}")).collect();
    writeln!(text, "(table $table funcref (elem{table}))").unwrap();
    for (index, function) in functions.iter().enumerate() {
        writeln!(text, "(type $t{index} (func {}))", signature(function)).unwrap();
    }
    let mut writer = Writer { random, functions, current: 0, locals: vec![], labels: 0, open: vec![], budget: 0 };
    for index in 0..count {
        let function = writer.function(index as usize);
        text.push_str(&function);
    }
    writer.current = 0;
    writer.locals.clear();
    writer.budget = 0;
    let arguments = writer.arguments(0);
    writeln!(text, "(func (export \"run\") (call $f0 {arguments})))").unwrap();
    text
}

fn signature(function: &Function) -> String {
    format!("(param {}) (result {})", function.params.join(" "), function.results.join(" "))
}

impl Writer<'_> {
    fn function(&mut self, index: usize) -> String {
        self.current = index;
        self.budget = 60;
        let function = &self.functions[index];
        let (head, results) = (signature(function), function.results.clone());
        self.locals = function.params.clone();
        let own: Vec<Ty> = (0..3 + self.random.below(6)).map(|_| self.random.of(&TYPES)).collect();
        self.locals.extend(["i32"]);
        self.locals.extend(&own);
        // Half of them return what functions that are left return, without being left.
        let last = self.random.of(&[0, LEFT]);
        let at_last: String = results.iter().map(|ty| constant(ty, last)).collect();
        let count = 2 + self.random.below(4);
        let body = self.statements(count);
        let end: String = match self.random.below(3) {
            0 => self.handed_on(),
            _ => results.iter().map(|ty| self.value(ty, 3)).collect(),
        };
        format!(
            "(func $f{index} {head} (local i32 {})
                (global.set $steps (i32.sub (global.get $steps) (i32.const 1)))
                (if (i32.lt_s (global.get $steps) (i32.const 0)) (then (return {at_last})))
                {body} {end})\n",
            own.join(" ")
        )
    }

    fn statements(&mut self, count: u32) -> String {
        (0..count).map(|_| self.statement() + "\n").collect()
    }

    fn spend(&mut self) -> bool {
        self.budget = self.budget.saturating_sub(1);
        self.budget > 0
    }

    fn label(&mut self) -> u32 {
        self.labels += 1;
        self.labels
    }

    /// Statements within a label.
    fn within(&mut self, label: u32, count: u32) -> String {
        self.open.push(label);
        let inner = self.statements(count);
        self.open.pop();
        inner
    }

    fn statement(&mut self) -> String {
        if !self.spend() {
            return format!("(call $log {})", self.value("i32", 0));
        }
        match self.random.below(14) {
            13 => format!("(if {} (then (return {})))", self.value("i32", 1), self.handed_on()),
            0 | 1 => format!("(call $log {})", self.value("i32", 3)),
            2 | 3 => {
                let local = self.random.below(u32::try_from(self.locals.len()).unwrap());
                let ty = self.locals[local as usize];
                format!("(local.set {local} {})", self.value(ty, 3))
            }
            4 => {
                let (condition, yes) = (self.value("i32", 2), self.statements(2));
                let no =
                    if self.random.below(2) == 0 { format!("(else {})", self.statements(1)) } else { String::new() };
                format!("(if {condition} (then {yes}) {no})")
            }
            5 => {
                let label = self.label();
                format!("(block $l{label} {})", self.within(label, 3))
            }
            6 | 7 => {
                // The remaining count is an operand below a block, and the loop's parameter. Every
                // round is a step.
                let (label, times, counter) = (self.label(), 1 + self.random.below(3), self.counter());
                let inner = self.statements(2);
                format!(
                    "(i32.const {times}) (loop $l{label} (param i32)
                        (block (param i32) (result i32) {inner})
                        (i32.const 1) (i32.sub) (local.tee {counter})
                        (global.set $steps (i32.sub (global.get $steps) (i32.const 1)))
                        (br_if $l{label} (i32.and (i32.gt_s (local.get {counter}) (i32.const 0))
                            (i32.gt_s (global.get $steps) (i32.const 0))))
                        (drop))"
                )
            }
            8 if !self.open.is_empty() => {
                let label = self.random.of(&self.open.clone());
                format!("(br_if $l{label} (i32.eqz (i32.and {} (i32.const 3))))", self.value("i32", 2))
            }
            9 if !self.open.is_empty() => {
                let labels: Vec<String> = (0..1 + self.random.below(3))
                    .map(|_| format!("$l{}", self.random.of(&self.open.clone())))
                    .collect();
                let rest = self.label();
                format!(
                    "(block $l{rest} (br_table {} $l{rest} (i32.and {} (i32.const 7))))",
                    labels.join(" "),
                    self.value("i32", 2)
                )
            }
            10 => self.throws(),
            11 => self.catches(),
            _ => self.call_statement(),
        }
    }

    /// The local that loops count in.
    fn counter(&self) -> usize {
        self.functions[self.current].params.len()
    }

    fn throws(&mut self) -> String {
        let thrown = match self.random.below(4) {
            3 => format!("(call $dies {}) (unreachable)", self.value("i32", 2)),
            0 => "(throw $empty)".to_owned(),
            1 => format!("(throw $one {})", self.value("i32", 2)),
            _ => format!("(throw $two {} {})", self.value("i64", 2), self.value("i32", 1)),
        };
        format!("(if (i32.eqz (i32.and {} (i32.const 3))) (then {thrown}))", self.value("i32", 1))
    }

    fn catches(&mut self) -> String {
        let (label, inner) = (self.label(), self.statements(2));
        match self.random.below(4) {
            0 => format!("(block $l{label} (try_table (catch $empty $l{label}) (catch_all $l{label}) {inner}))"),
            1 => format!(
                "(block $d{label} (block $l{label} (result i32) (try_table (catch $one $l{label}) {inner}) (br $d{label})) (call $log))"
            ),
            2 => format!(
                "(block $d{label} (block $l{label} (result i64 i32) (try_table (catch $two $l{label}) {inner}) (br $d{label}))
                    (call $log) (i32.wrap_i64) (call $log))"
            ),
            _ => {
                // The code that C++ compiles cleanup to.
                let cleanup = self.statements(1);
                format!(
                    "(block $d{label} (block $l{label} (result exnref) (try_table (catch_all_ref $l{label}) {inner}) (br $d{label}))
                        (call $log (call $fork)) {cleanup} (throw_ref))"
                )
            }
        }
    }

    /// A later function, or this one.
    fn callee(&mut self) -> usize {
        self.current + self.random.below(u32::try_from(self.functions.len() - self.current).unwrap()) as usize
    }

    fn arguments(&mut self, callee: usize) -> String {
        let params = self.functions[callee].params.clone();
        params.iter().map(|ty| self.value(ty, 2)).collect::<Vec<_>>().join(" ")
    }

    fn call(&mut self, callee: usize) -> String {
        let arguments = self.arguments(callee);
        if self.random.below(4) == 0 {
            format!("(call_indirect $table (type $t{callee}) {arguments} (i32.const {callee}))")
        } else {
            format!("(call $f{callee} {arguments})")
        }
    }

    /// A call of a function with the results of the one that is written.
    fn handed_on(&mut self) -> String {
        let results = &self.functions[self.current].results;
        let same = |index: &usize| self.functions[*index].results == *results;
        let callees: Vec<usize> = (self.current..self.functions.len()).filter(same).collect();
        let callee = self.random.of(&callees);
        self.call(callee)
    }

    /// A call, whose results go into locals, or nowhere.
    fn call_statement(&mut self) -> String {
        let callee = self.callee();
        let mut text = self.call(callee);
        for ty in self.functions[callee].results.clone().iter().rev() {
            let fitting: Vec<usize> = (0..self.locals.len()).filter(|local| self.locals[*local] == *ty).collect();
            match fitting[..] {
                [] => text.push_str(" (drop)"),
                _ => write!(text, " (local.set {})", self.random.of(&fitting)).unwrap(),
            }
        }
        text
    }

    fn value(&mut self, ty: Ty, depth: u32) -> String {
        let fitting: Vec<usize> = (0..self.locals.len()).filter(|local| self.locals[*local] == ty).collect();
        if depth == 0 || !self.spend() {
            return match fitting[..] {
                [] if self.random.below(8) == 0 => constant(ty, LEFT),
                [] => constant(ty, self.random.below(100).cast_signed()),
                _ => format!("(local.get {})", self.random.of(&fitting)),
            };
        }
        let deeper = depth - 1;
        match self.random.below(10) {
            0 | 1 => operation(ty, &self.value(ty, deeper), &self.value(ty, deeper)),
            2 => convert(ty, &self.value("i32", deeper)),
            3 | 4 => convert(ty, "(call $fork)"),
            5 => {
                let callee = self.callee();
                let matching = self.functions[callee].results == [ty];
                if matching {
                    self.call(callee)
                } else {
                    operation(ty, &self.value(ty, deeper), &self.value(ty, deeper))
                }
            }
            6 => {
                let (condition, yes, no) = (self.value("i32", deeper), self.value(ty, deeper), self.value(ty, deeper));
                let first = self.statement();
                format!("(if (result {ty}) {condition} (then {first} {yes}) (else {no}))")
            }
            7 => {
                let label = self.label();
                let (first, condition, inner) =
                    (self.value(ty, deeper), self.value("i32", deeper), self.value(ty, deeper));
                let statement = self.statement();
                format!(
                    "(block $v{label} (result {ty}) {statement} (br_if $v{label} {first} {condition}) (drop) {inner})"
                )
            }
            8 if !fitting.is_empty() => {
                format!("(local.tee {} {})", self.random.of(&fitting), self.value(ty, deeper))
            }
            _ => {
                // An operand that waits below a block.
                let (below, inner) = (self.value(ty, deeper), self.value(ty, deeper));
                let statement = self.statement();
                format!("{below} (block (param {ty}) (result {ty}) {statement} {inner} {})", operator(ty))
            }
        }
    }
}

fn constant(ty: Ty, value: i32) -> String {
    match ty {
        "v128" => format!("(v128.const i32x4 {value} 2 3 {value})"),
        _ => format!("({ty}.const {value})"),
    }
}

fn operator(ty: Ty) -> &'static str {
    match ty {
        "i32" => "(i32.sub)",
        "i64" => "(i64.sub)",
        "f32" => "(f32.add)",
        "f64" => "(f64.add)",
        _ => "(i32x4.add)",
    }
}

fn operation(ty: Ty, a: &str, b: &str) -> String {
    format!("{a} {b} {}", operator(ty))
}

fn convert(ty: Ty, value: &str) -> String {
    match ty {
        "i32" => format!("{value} (i32.const 7) (i32.mul)"),
        "i64" => format!("{value} (i64.extend_i32_s)"),
        "f32" => format!("{value} (f32.convert_i32_s)"),
        "f64" => format!("{value} (f64.convert_i32_s)"),
        _ => format!("{value} (i32x4.splat)"),
    }
}
