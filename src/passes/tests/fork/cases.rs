//! Programs by hand, one for each construct.

use super::harness::{Forks, ONLY, Where, both, check, engine};

const PLACES: [Where; 2] = [Where::Same, Where::New];

/// A program with the function `run`. `$log` takes an i32 and notes it in memory, `$fork` is fork.
pub fn program(rest: &str) -> Vec<u8> {
    let text = format!(
        r#"(module (import "lind" "fork" (func $fork (result i32)))
        (memory (export "memory") 2) (global $at (export "at") (mut i32) (i32.const 1024))
        (func $log (param i32)
            (i32.store (global.get $at) (local.get 0))
            (global.set $at (i32.add (global.get $at) (i32.const 4))))
        ;; Forks some frames further up, and returns a mix of both.
        (func $deep (param $n i32) (result i32) (local $kept i32)
            (local.set $kept (i32.mul (local.get $n) (i32.const 31)))
            (if (result i32) (local.get $n)
                (then (i32.add (local.get $kept) (call $deep (i32.sub (local.get $n) (i32.const 1)))))
                (else (call $fork))))
        {rest})"#
    );
    wat::parse_str(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn forks(rest: &str) -> Forks {
    let engine = engine();
    check(&engine, &both(&engine, &program(rest), &ONLY), "run", &PLACES)
}

/// Every call of fork forks, so often.
fn all(rest: &str, count: u32) {
    assert_eq!(forks(rest), Forks { done: count, refused: 0 });
}

#[test]
fn forks_once() {
    all(r#"(func (export "run") (call $log (call $fork)))"#, 1);
}

#[test]
fn forks_in_the_last_place() {
    all(
        r#"(func (export "run") (return_call $tail)) (func $tail (call $log (call $up))) (func $up (result i32) (return_call $fork))"#,
        1,
    );
}

#[test]
fn locals_of_all_types_are_kept() {
    all(
        r#"(func (export "run") (call $all (i32.const -5) (i64.const -6000000000) (f32.const 1.5) (f64.const -2.25)
                (v128.const i32x4 1 2 3 4)))
        (func $all (param i32 i64 f32 f64 v128) (local $x i32) (local $y v128) (local $z i64)
            (local.set $y (i32x4.splat (local.get 0)))
            (local.set $z (i64.const 77))
            (local.set $x (call $deep (i32.const 3)))
            (call $log (local.get $x)) (call $log (local.get 0))
            (i64.store (i32.const 16) (i64.add (local.get 1) (local.get $z)))
            (f32.store (i32.const 24) (local.get 2)) (f64.store (i32.const 32) (local.get 3))
            (v128.store (i32.const 48) (local.get 4)) (v128.store (i32.const 64) (local.get $y)))"#,
        1,
    );
}

#[test]
fn operands_below_calls_are_kept() {
    all(
        r#"(func (export "run")
            (call $log (i32.add (i32.sub (i32.const 100) (call $fork)) (i32.mul (call $deep (i32.const 1)) (call $fork))))
            (i32.const 8) (i64.const 9) (call $fork) (v128.const i64x2 7 8)
            (block (param i32 v128) (result i32)
                (drop) (i32.const 5) (call $fork) (i32.add)
                (loop (param i32) (result i32) (f64.const 3) (call $fork) (drop) (drop)) (i32.mul))
            (call $log) (i64.store))"#,
        6,
    );
}

#[test]
fn many_values_are_kept() {
    let locals: String = (0..150).map(|n| format!("(local $a{n} i32) (local $b{n} i64)")).collect();
    let sets: String = (0..150)
        .map(|n| format!("(local.set $a{n} (i32.const {n})) (local.set $b{n} (i64.extend_i32_u (local.get $a{n})))"))
        .collect();
    let logs: String = (0..150)
        .map(|n| format!("(call $log (local.get $a{n})) (call $log (i32.wrap_i64 (local.get $b{n})))"))
        .collect();
    all(
        &format!(
            r#"(func (export "run") {locals} {sets} (call $log (call $fork)) {logs} (call $log (call $fork)) {logs})"#
        ),
        2,
    );
}

#[test]
fn loops_go_on() {
    all(
        r#"(func (export "run") (local $i i32) (local $sum i32)
            (loop $next
                (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 3)) (call $fork)))
                (call $log (local.get $sum))
                (loop $inner
                    (local.set $i (i32.add (local.get $i) (i32.const 1)))
                    (br_if $inner (i32.rem_u (i32.add (local.get $i) (call $deep (i32.and (local.get $i) (i32.const 3)))) (i32.const 3))))
                (br_if $next (i32.lt_u (local.get $i) (i32.const 12))))
            (call $log (local.get $i)))"#,
        15,
    );
}

#[test]
fn loops_with_parameters_go_on() {
    all(
        r#"(func (export "run") (local $x i32) (local $y i64)
            (i32.const 6) (i64.const 1)
            (loop $next (param i32 i64) (result i64)
                (local.set $y) (local.tee $x) (call $fork) (i32.add) (call $log)
                (i32.sub (local.get $x) (i32.const 1)) (i64.mul (local.get $y) (i64.const 3))
                (local.get $x) (i32.const 1) (i32.gt_u) (br_if $next)
                (local.set $y) (drop) (call $log (call $fork)) (local.get $y))
            (local.set $y) (i64.store (i32.const 8) (local.get $y)))"#,
        7,
    );
}

#[test]
fn conditions_are_kept() {
    all(
        r#"(func $branches (param $c i32) (local $x i32)
            (local.set $x (i32.mul (local.get $c) (i32.const 5)))
            (if (local.get $c)
                (then (call $log (i32.add (local.get $x) (call $fork))) (if (i32.eq (local.get $c) (i32.const 2)) (then (call $log (call $fork)))))
                (else (call $log (call $deep (local.get $c))) (call $log (call $fork))))
            (if (i32.eqz (local.get $c)) (then (call $log (call $fork))))
            (if (local.get $c) (then (call $log (i32.const 3))) (else (call $log (call $fork))))
            (i32.const 11) (i32.const 12)
            (if (param i32 i32) (result i32 i32) (local.get $c) (then (call $fork) (drop)) (else (drop) (call $fork)))
            (call $log) (call $log)
            (i32.const 13)
            (if (param i32) (result i32) (local.get $c) (then (call $fork) (i32.add)))
            (call $log))
        (func (export "run") (call $branches (i32.const 0)) (call $branches (i32.const 1)) (call $branches (i32.const 2)))"#,
        12,
    );
}

#[test]
fn branches_find_their_labels() {
    all(
        r#"(func $switch (param $c i32) (result i32)
            (block $out (result i32)
                (block $three (block $two (block $one (block $zero
                    (br_table $zero $one $two $three (local.get $c)))
                    (drop (call $fork)) (br $out (i32.const 10)))
                    (br_if $two (i32.gt_u (call $fork) (i32.const 1000)))
                    (drop (br_if $out (i32.const 20) (i32.and (call $fork) (i32.const 1)))))
                    (call $log (call $fork))
                    (return (i32.add (i32.const 30) (call $deep (i32.const 2)))))
                (block $nothing (result i32)
                    (br_if $out (i32.const 40) (call $fork)))))
        (func (export "run") (local $i i32)
            (loop $next
                (call $log (call $switch (local.get $i)))
                (local.set $i (i32.add (local.get $i) (i32.const 1)))
                (br_if $next (i32.lt_u (local.get $i) (i32.const 6)))))"#,
        8,
    );
}

#[test]
fn branches_on_references_find_their_labels() {
    all(
        r#"(type $t (func (result i32))) (elem declare func $seven) (func $seven (result i32) (i32.const 7))
        (func $pick (param $null i32) (result (ref null $t))
            (if (result (ref null $t)) (local.get $null) (then (ref.null $t)) (else (ref.func $seven))))
        (func $try (param $null i32)
            (block $none
                (call $log (call $fork))
                (call $log (call_ref $t (br_on_null $none (call $pick (local.get $null)))))
                (call $log (call $fork)))
            (block $some (result (ref $t))
                (call $log (call $fork))
                (br_on_non_null $some (call $pick (local.get $null)))
                (call $log (call $fork))
                (return))
            (call $log (call_ref $t))
            (block $is (result (ref null $t))
                (call $log (call $fork))
                (br_on_cast $is (ref null $t) (ref $t) (call $pick (local.get $null))))
            (drop)
            (call $log (call $fork)))
        (func (export "run") (call $try (i32.const 0)) (call $try (i32.const 1)))"#,
        8,
    );
}

#[test]
fn programs_do_not_see_the_exception() {
    all(
        r#"(tag $t (param i32))
        (func $throws (param $n i32) (result i32)
            (if (i32.and (call $deep (local.get $n)) (i32.const 1)) (then (throw $t (local.get $n))))
            (call $fork))
        (func $guarded (param $n i32) (result i32) (local $x i32)
            (local.set $x (i32.const 1000))
            (block $all
                (block $t (result i32)
                    (try_table (result i32) (catch $t $t) (catch_all $all)
                        (local.set $x (i32.add (local.get $x) (call $throws (local.get $n))))
                        (local.set $x (i32.add (local.get $x) (call $throws (i32.add (local.get $n) (i32.const 1)))))
                        (i32.const -1)))
                (i32.add (local.get $x))
                (return))
            (i32.const 123))
        (func (export "run") (local $n i32)
            (loop $next
                (call $log (call $guarded (local.get $n)))
                (local.set $n (i32.add (local.get $n) (i32.const 1)))
                (br_if $next (i32.lt_u (local.get $n) (i32.const 6)))))"#,
        16,
    );
}

/// Frames that only hand on what they called for are not there when the program goes on; others
/// are.
#[test]
fn frames_that_hold_nothing_are_left_out() {
    all(
        r#"(tag $t)
        (func $ends (param $n i32) (result i32) (call $deep (local.get $n)))
        (func $returns (param $n i32) (result i32)
            (if (local.get $n) (then (i32.const 77) (return (call $ends (i32.const 1)))))
            (call $log (call $ends (i32.const 2))) (nop) (call $ends (i32.const 3)) (nop))
        (func $branches (param $n i32) (result i32)
            (block $out (result i32)
                (if (result i32) (local.get $n)
                    (then (block (result i32) (i32.const 5) (br $out (call $returns (i32.const 0)))) (drop) (br 2 (call $ends (i32.const 1))))
                    (else (call $returns (i32.const 1))))))
        (func $uses (param $n i32) (result i32)
            (i32.add (block (result i32) (call $branches (local.get $n))) (local.get $n)))
        (func $loops (param $n i32) (result i32)
            (local.get $n)
            (loop $next (param i32) (result i32)
                (drop) (local.set $n (i32.sub (local.get $n) (i32.const 1)))
                (if (i32.gt_s (local.get $n) (i32.const 0)) (then (br $next (call $deep (local.get $n)))))
                (call $uses (local.get $n))))
        (func $throws (call $log (call $fork)) (throw $t))
        (func $nothing (call $throws))
        (func $catches (block $caught (try_table (catch $t $caught) (call $nothing) (return)) (return)) (call $log (call $fork)))
        (func $goes_on (block $first (call $log (call $branches (i32.const 1))) (call $catches)) (call $log (i32.const 8)))
        (func (export "run")
            (call $log (call $branches (i32.const 0))) (call $log (call $branches (i32.const 1)))
            (call $log (call $loops (i32.const 3))) (call $goes_on) (call $catches))"#,
        12,
    );
}

#[test]
fn exceptions_pass_frames_that_were_resumed() {
    all(
        r#"(tag $t (param i32)) (tag $other)
        (func $throws (param $n i32) (local $r i32)
            (local.set $r (call $deep (i32.const 2)))
            (throw $t (i32.add (local.get $n) (local.get $r))))
        (func $passes (param $n i32)
            (block $o (try_table (catch $other $o) (call $throws (local.get $n))))
            (call $log (i32.const 666)))
        (func (export "run") (local $kept i32)
            (local.set $kept (i32.const 5))
            (call $log (block $t (result i32)
                (try_table (catch $t $t) (call $passes (i32.const 40)))
                (i32.const 1)))
            (call $log (local.get $kept)) (call $log (call $fork)))"#,
        2,
    );
}

#[test]
fn calls_through_tables_and_references_are_found() {
    all(
        r#"(type $t (func (param i32) (result i32))) (type $u (func (param i32)))
        (table $table funcref (elem $deep $plain $unary $logs)) (elem declare func $deep)
        (func $plain (param i32) (result i32) (local.get 0))
        (func $unary (param i32) (result i32) (return_call_indirect $table (type $t) (local.get 0) (i32.const 0)))
        (func $logs (param i32) (call $log (call $deep (local.get 0))))
        (func $by_reference (param i32) (result i32) (return_call_ref $t (local.get 0) (ref.func $deep)))
        (func (export "run") (local $i i32)
            (loop $next
                (call $log (i32.add (i32.const 1) (call_indirect $table (type $t) (i32.const 2) (local.get $i))))
                (local.set $i (i32.add (local.get $i) (i32.const 1)))
                (br_if $next (i32.lt_u (local.get $i) (i32.const 3))))
            (call_indirect $table (type $u) (i32.const 2) (i32.const 3))
            (call $log (i32.sub (i32.const 9) (call_ref $t (i32.const 1) (ref.func $deep))))
            (call $log (call $by_reference (i32.const 2))))"#,
        5,
    );
}

#[test]
fn several_results_are_kept() {
    all(
        r#"(func $three (result i32 i64 f64) (call $fork) (i64.const 5) (f64.const 2.5))
        (func $pairs (param i32) (result i32 i32) (local.get 0) (call $fork)
            (if (param i32 i32) (result i32 i32) (local.get 0) (then (call $fork) (i32.add))))
        (func (export "run")
            (call $three) (f64.store (i32.const 8) (f64.const 1)) (drop) (drop) (call $log)
            (call $pairs (i32.const 0)) (call $log) (call $log)
            (call $pairs (i32.const 1)) (call $pairs (call $fork)) (call $log) (call $log) (call $log) (call $log))"#,
        7,
    );
}

#[test]
fn who_returns_what_is_returned_when_left_has_not_been_left() {
    all(
        r#"(func (export "run")
            (call $log (call $int (i32.const 0))) (call $log (call $int (i32.const 1)))
            (call $log (i32.wrap_i64 (call $long (i32.const 0)))) (call $log (i32.wrap_i64 (call $long (i32.const 1))))
            (call $pair (i32.const 0)) (call $log) (call $log) (call $pair (i32.const 1)) (call $log) (call $log))
        (func $int (param i32) (result i32) (if (local.get 0) (then (call $log (call $fork)))) (i32.const -86))
        (func $long (param i32) (result i64) (if (local.get 0) (then (call $log (call $fork)))) (i64.const -86))
        (func $pair (param i32) (result i32 i32)
            (if (local.get 0) (then (call $log (call $fork)))) (i32.const 5) (i32.const -86))"#,
        3,
    );
}

#[test]
fn deep_recursion_is_left_and_resumed() {
    all(r#"(func (export "run") (call $log (call $deep (i32.const 4000))) (call $log (call $deep (i32.const 3))))"#, 2);
}

#[test]
fn entries_may_have_results() {
    let rest = r#"(func $f (export "i") (param i32) (result i32) (call $log (call $fork)) (i32.const 1))
        (func (export "run") (result i64 f32) (call $log (call $fork)) (return_call $g))
        (func $g (result i64 f32) (call $log (call $fork)) (i64.const 1) (f32.const 2))
        (func (export "tail") (result i64 f32) (return_call $g))
        (func (export "reference") (result funcref) (call $log (call $fork)) (ref.null func))"#;
    all(rest, 2);
    let engine = engine();
    let modules = both(&engine, &program(rest), &ONLY);
    assert_eq!(check(&engine, &modules, "tail", &PLACES), Forks { done: 1, refused: 0 });
    assert_eq!(check(&engine, &modules, "reference", &PLACES), Forks { done: 0, refused: 1 });
}

/// Nothing comes back to them, so they need not be there.
#[test]
fn frames_below_what_does_not_return_are_left_for_good() {
    all(
        r#"(tag $t (param i32))
        (func $dies (param $n i32) (result i32)
            (call $log (i32.add (call $deep (i32.const 2)) (local.get $n)))
            (throw $t (call $fork)))
        (func $error (param $n i32) (result f64) (call $log (local.get $n)) (call $dies (local.get $n)) (unreachable))
        (func $between (param $n i32) (result i64) (i64.trunc_f64_s (call $error (local.get $n))))
        (func $catches (param $n i32) (result i32)
            (block $t (result i32)
                (try_table (catch $t $t) (drop (call $between (i32.const 7))))
                (i32.const 1))
            (i32.add (local.get $n)) (call $log) (call $fork))
        (func $again (param $n i32) (call $dies (local.get $n)) (unreachable))
        (func (export "run")
            (call $log (call $catches (i32.const 1000)))
            (block $t (result i32)
                (try_table (catch $t $t) (call $again (i32.const 3)))
                (i32.const 2))
            (call $log) (call $log (call $fork))
            (call $again (i32.const 5)))"#,
        8,
    );
}

/// An exception that is being handled is a reference, which cannot be written to memory.
#[test]
fn frames_that_hold_references_cannot_be_left() {
    let rest = r#"(tag $t (param i32))
        (func $cleanup (param i32) (call $log (i32.add (local.get 0) (call $fork))))
        (func $unwinds (local $e exnref)
            (block $caught (result exnref)
                (try_table (catch_all_ref $caught) (call $log (call $deep (i32.const 1))) (throw $t (i32.const 4)))
                (unreachable))
            (local.set $e)
            (call $cleanup (i32.const 100)) (call $cleanup (i32.const 200))
            (throw_ref (local.get $e)))
        (func $catches
            (call $log (block $t (result i32) (try_table (catch $t $t) (call $unwinds)) (i32.const 1))))
        (func $throws (drop (call $fork)) (throw $t (i32.const 8)))
        (func $twice (local $e exnref)
            (block $t (result i32 exnref) (try_table (catch_ref $t $t) (call $throws)) (unreachable))
            (local.set $e) (drop)
            (block $again (result i32) (try_table (catch $t $again) (call $throws)) (unreachable))
            (call $log)
            (throw_ref (local.get $e)))
        (func (export "run")
            (call $catches)
            (block $t (result i32) (try_table (catch $t $t) (call $twice)) (unreachable)) (call $log)
            (call $log (call $fork)))"#;
    assert_eq!(forks(rest), Forks { done: 3, refused: 3 });
}

#[test]
fn references_that_are_not_needed_do_not_matter() {
    all(
        r#"(type $t (func (param i32) (result i32))) (elem declare func $deep)
        (func $takes (param $f (ref $t)) (param $n i32) (result i32) (local $g funcref)
            (local.set $g (ref.func $deep))
            (local.set $n (call_ref $t (local.get $n) (local.get $f)))
            (if (local.get $n) (then (call $log (call $fork))))
            (local.get $n))
        (func (export "run") (call $log (call $takes (ref.func $deep) (i32.const 2))))"#,
        2,
    );
}

#[test]
fn references_that_are_needed_do() {
    let rest = r#"(type $t (func (param i32) (result i32))) (elem declare func $deep)
        (func $takes (param $f (ref $t)) (param $n i32) (result i32)
            (if (local.get $n) (then (call $log (call $fork))))
            (i32.const 5) (i32.const 0) (local.get $f) (call $fork) (drop) (call_ref $t) (i32.add))
        (func (export "run") (call $log (call $takes (ref.func $deep) (i32.const 2))))"#;
    assert_eq!(forks(rest), Forks { done: 1, refused: 2 });
}

#[test]
fn code_that_is_not_reached_is_left_alone() {
    all(
        r#"(func (export "run") (local $e exnref)
            (call $log (call $fork))
            (block (result i32) (br 0 (i32.const 4)) (call $fork) (i32.add) (block (call $fork) (drop)))
            (call $log)
            (return)
            (call $fork) (call $log) (loop (call $deep (i32.const 1)) (br 0)))"#,
        1,
    );
}

#[test]
fn functions_are_forked_in_their_turn() {
    // Functions that were resumed call functions that were not, and fork there.
    all(
        r#"(func $a (param $n i32) (result i32) (local $i i32) (local $sum i32)
            (loop $next
                (local.set $sum (i32.add (local.get $sum) (call $b (local.get $i) (local.get $n))))
                (local.set $i (i32.add (local.get $i) (i32.const 1)))
                (br_if $next (i32.le_u (local.get $i) (local.get $n))))
            (local.get $sum))
        (func $b (param $i i32) (param $n i32) (result i32)
            (if (result i32) (i32.and (local.get $i) (i32.const 1))
                (then (if (result i32) (local.get $n)
                    (then (i32.mul (call $a (i32.sub (local.get $n) (i32.const 1))) (call $fork)))
                    (else (call $fork))))
                (else (i32.add (call $fork) (local.get $i)))))
        (func (export "run") (call $log (call $a (i32.const 4))))"#,
        37,
    );
}
