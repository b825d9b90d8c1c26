//! The program: files, errors, exit status.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

fn passes(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_lind-passes")).args(args).current_dir(dir).output().unwrap()
}

fn linked() -> Vec<u8> {
    wat::parse_str(r#"(module (import "env" "memory" (memory 2 65536 shared)) (data "x"))"#).unwrap()
}

#[test]
fn the_input_may_be_the_output() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.wasm");
    fs::write(&file, linked()).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o750)).unwrap();
    let output = passes(dir.path(), &["a.wasm", "-o", "a.wasm"]);
    assert!(output.status.success() && output.stderr.is_empty() && output.stdout.is_empty());
    assert_eq!(fs::read(&file).unwrap(), lind_passes::run(&linked(), &Default::default()).unwrap());
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o750);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "a temporary file was left");
}

#[test]
fn a_device_stays_one() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.wasm"), linked()).unwrap();
    let sink = dir.path().join("sink");
    std::os::unix::fs::symlink("/dev/null", &sink).unwrap();
    assert!(passes(dir.path(), &["a.wasm", "-o", "sink"]).status.success());
    assert!(fs::symlink_metadata(&sink).unwrap().is_symlink());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
}

#[test]
fn errors_are_one_line_and_leave_the_output_alone() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("text"), "hello").unwrap();
    fs::write(dir.path().join("good.wasm"), linked()).unwrap();
    fs::write(dir.path().join("out"), "old").unwrap();
    for (args, words) in [
        (["text", "-o", "out"], "text: not a wasm module"),
        (["missing", "-o", "out"], "missing: No such file"),
        (["good.wasm", "-o", "nowhere/out"], "nowhere/out: No such file"),
        (["good.wasm", "-o", "/"], "/: not the name of a file"),
    ] {
        let output = passes(dir.path(), &args);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}");
        assert!(error.starts_with("lind-passes: ") && error.contains(words), "{args:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{args:?}: {error}");
    }
    assert_eq!(fs::read(dir.path().join("out")).unwrap(), b"old");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
}
