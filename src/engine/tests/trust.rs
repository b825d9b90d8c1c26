//! Compiled code runs only if this user compiled it.

mod common;

use std::fs;

use common::{Runner, program};
use lind_kernel::Errno;
use lind_kernel::cage::Status;

fn exits_with(code: u8) -> String {
    program("", &format!("(call $exit (i32.const {code}))"))
}

#[test]
fn a_precompiled_program_runs() {
    let runner = Runner::new();
    let wasm = runner.install("app.wasm", &exits_with(5));
    let cwasm = runner.engine.precompile(&wasm, None).unwrap();
    assert_eq!(cwasm, runner.path("app.cwasm"));
    fs::remove_file(wasm).unwrap();
    assert_eq!(runner.run(&["app.cwasm"]).unwrap(), Status::Exited(5));
    assert_eq!(runner.again().run(&["app.cwasm"]).unwrap(), Status::Exited(5));
}

#[test]
fn a_device_stays_one() {
    let runner = Runner::new();
    let wasm = runner.install("app.wasm", &exits_with(5));
    let sink = runner.path("sink");
    std::os::unix::fs::symlink("/dev/null", &sink).unwrap();
    runner.engine.precompile(&wasm, Some(&sink)).unwrap();
    assert!(fs::symlink_metadata(&sink).unwrap().is_symlink());
}

#[test]
fn a_changed_byte_anywhere_is_refused() {
    let runner = Runner::new();
    let wasm = runner.install("app.wasm", &exits_with(5));
    let cwasm = runner.engine.precompile(&wasm, None).unwrap();
    fs::remove_file(wasm).unwrap();
    let good = fs::read(&cwasm).unwrap();
    let len = good.len();
    for at in [0, 4, 100, len / 2, len - 200, len - 136, len - 100, len - 40, len - 33, len - 32, len - 1] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        fs::write(&cwasm, &bad).unwrap();
        let error = runner.run(&["app.cwasm"]).unwrap_err();
        // A file that no longer begins as compiled code does is not a program at all.
        assert!(error.untrusted || at < 4, "byte {at}: {}", error.reason);
    }
    for bad in [&good[..len - 1], &good[..200], &good[..4], &[&good[..], b"x"].concat(), &good[136..]] {
        fs::write(&cwasm, bad).unwrap();
        assert!(runner.run(&["app.cwasm"]).is_err());
    }
    fs::write(&cwasm, &good).unwrap();
    assert_eq!(runner.run(&["app.cwasm"]).unwrap(), Status::Exited(5));
}

#[test]
fn another_users_code_falls_back_to_the_wasm_beside_it() {
    let theirs = Runner::new();
    let wasm = theirs.install("app.wasm", &exits_with(66));
    let forged = theirs.engine.precompile(&wasm, None).unwrap();

    let ours = Runner::new();
    fs::copy(&forged, ours.path("app.cwasm")).unwrap();
    let error = ours.run(&["app.cwasm"]).unwrap_err();
    assert!(error.untrusted && error.errno == Errno::EACCES, "{}", error.reason);
    assert!(error.reason.contains("pass the .wasm"), "{}", error.reason);
    ours.install("app.wasm", &exits_with(7));
    assert_eq!(ours.run(&["app.cwasm"]).unwrap(), Status::Exited(7));
}

#[test]
fn a_rewritten_program_is_noticed() {
    let runner = Runner::new();
    for code in 1..6 {
        runner.install("app.wasm", &exits_with(code));
        assert_eq!(runner.run(&["app.wasm"]).unwrap(), Status::Exited(code));
        let cwasm = runner.engine.precompile(&runner.path("app.wasm"), None).unwrap();
        assert_eq!(runner.run(&["app.cwasm"]).unwrap(), Status::Exited(code));
        fs::remove_file(cwasm).unwrap();
    }
}

#[test]
fn compiled_code_is_cached_and_a_damaged_cache_is_not_believed() {
    let runner = Runner::new();
    runner.install("app.wasm", &exits_with(8));
    assert_eq!(runner.run(&["app.wasm"]).unwrap(), Status::Exited(8));
    let cached: Vec<_> = fs::read_dir(runner.cache()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(cached.len(), 1, "{cached:?}");
    let good = fs::read(&cached[0]).unwrap();
    let mut bad = good.clone();
    bad[good.len() / 2] ^= 0xff;
    fs::write(&cached[0], bad).unwrap();
    let runner = runner.again();
    assert_eq!(runner.run(&["app.wasm"]).unwrap(), Status::Exited(8));
    assert_eq!(fs::read(&cached[0]).unwrap(), good, "the damaged entry was not replaced");
}

#[test]
fn what_was_verified_before_is_verified_again_after_a_change() {
    let mut runner = Runner::new();
    let module = runner.install("app.wasm", &exits_with(8));
    let later = fs::metadata(&module).unwrap().modified().unwrap();
    let runs = |runner, code| starts(runner, "app.wasm", Some(code));
    // The first start compiles, the second verifies and notes it, the third goes by the note.
    for _ in 0..3 {
        runner = runs(runner, 8);
    }
    let [code] = &in_cache(&runner, "cwasm")[..] else { panic!("one program, one file of code") };
    let good = fs::read(code).unwrap();
    // Damaged code, the file's length and the time of its last change as before.
    let mut bad = good.clone();
    bad[good.len() / 2] ^= 0xff;
    let written = fs::metadata(code).unwrap().modified().unwrap();
    fs::write(code, bad).unwrap();
    fs::File::options().write(true).open(code).unwrap().set_modified(written).unwrap();
    runner = runs(runner, 8);
    assert_eq!(fs::read(code).unwrap(), good, "the damaged code was used");
    // Another program in the same file, with the same length and time.
    for _ in 0..2 {
        runner = runs(runner, 8);
    }
    runner.install("app.wasm", &exits_with(9));
    fs::File::options().write(true).open(&module).unwrap().set_modified(later).unwrap();
    for _ in 0..3 {
        runner = runs(runner, 9);
    }
    // Notes of somebody else's.
    for note in in_cache(&runner, "note") {
        fs::write(note, [0; 120]).unwrap();
    }
    runs(runner, 9);
}

/// Starts a program again: it exits with the code, or without one it is refused.
fn starts(runner: Runner, name: &str, code: Option<u8>) -> Runner {
    std::thread::sleep(std::time::Duration::from_millis(40));
    let runner = runner.again();
    match (runner.run(&[name]), code) {
        (Ok(status), Some(code)) => assert_eq!(status, Status::Exited(code)),
        (Err(error), None) => assert!(error.untrusted, "{}", error.reason),
        (result, _) => panic!("{name}: {:?}", result.map_err(|error| error.reason)),
    }
    runner
}

#[test]
fn what_is_prepared_is_compiled_once_and_then_known_by_a_note() {
    let mut runner = Runner::new();
    let module = runner.install("app.wasm", &exits_with(8));
    for _ in 0..3 {
        std::thread::sleep(std::time::Duration::from_millis(40));
        runner = runner.again();
        runner.engine.preparing(vec![fs::File::open(&module).unwrap()])();
        assert_eq!(in_cache(&runner, "cwasm").len(), 1);
    }
    let noted = in_cache(&runner, "note").len();
    for _ in 0..3 {
        runner = starts(runner, "app.wasm", Some(8));
    }
    // Where modules are noted, which depends on the filesystem, this one was.
    assert_eq!(in_cache(&runner, "note").len(), noted);
}

fn in_cache(runner: &Runner, kind: &str) -> Vec<std::path::PathBuf> {
    let all = fs::read_dir(runner.cache()).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.extension().is_some_and(|end| end == kind)).collect()
}

#[test]
fn compiled_code_is_verified_again_after_a_change() {
    let mut runner = Runner::new();
    let wasm = runner.install("app.wasm", &exits_with(8));
    let cwasm = runner.engine.precompile(&wasm, None).unwrap();
    fs::rename(&wasm, runner.path("other.wasm")).unwrap();
    // The first start keeps a copy, the second verifies and notes it, the third goes by the note.
    for _ in 0..3 {
        runner = starts(runner, "app.cwasm", Some(8));
    }
    let noted = in_cache(&runner, "note").len();
    for _ in 0..3 {
        runner = starts(runner, "other.wasm", Some(8));
    }
    // Where modules are noted, which depends on the filesystem, compiled code is.
    assert_eq!(in_cache(&runner, "note").len(), 2 * noted);
    // Another byte, the file's length and the time of its last change as before.
    let good = fs::read(&cwasm).unwrap();
    let written = fs::metadata(&cwasm).unwrap().modified().unwrap();
    let put = |bytes: &[u8]| {
        fs::write(&cwasm, bytes).unwrap();
        fs::File::options().write(true).open(&cwasm).unwrap().set_modified(written).unwrap();
    };
    let mut bad = good.clone();
    bad[good.len() / 2] ^= 1;
    put(&bad);
    runner = starts(runner, "app.cwasm", None);
    put(&good);
    for _ in 0..3 {
        runner = starts(runner, "app.cwasm", Some(8));
    }
    // The code in the cache is damaged: then the file itself counts, and replaces it.
    let [code] = &in_cache(&runner, "cwasm")[..] else { panic!("one program, one file of code") };
    fs::write(code, &bad).unwrap();
    runner = starts(runner, "app.cwasm", Some(8));
    if noted > 0 {
        assert_eq!(fs::read(code).unwrap(), good, "the damaged code was not replaced");
    }
    starts(runner, "app.cwasm", Some(8));
}

#[test]
fn the_key_must_be_private() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (data, cache) = (folder.path().join("data"), folder.path().join("cache"));
    let first = lind_engine::CodeStore::open_in(&data, &cache).unwrap();
    let second = lind_engine::CodeStore::open_in(&data, &cache).unwrap();
    assert_eq!(first.checks, second.checks);
    fs::set_permissions(data.join("key"), fs::Permissions::from_mode(0o644)).unwrap();
    assert!(lind_engine::CodeStore::open_in(&data, &cache).is_err());
    fs::set_permissions(data.join("key"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::rename(data.join("key"), data.join("elsewhere")).unwrap();
    std::os::unix::fs::symlink("elsewhere", data.join("key")).unwrap();
    assert!(lind_engine::CodeStore::open_in(&data, &cache).is_err());
    fs::rename(data.join("elsewhere"), data.join("key")).unwrap();
    fs::hard_link(data.join("key"), folder.path().join("other")).unwrap();
    assert!(lind_engine::CodeStore::open_in(&data, &cache).is_err());
    fs::remove_file(folder.path().join("other")).unwrap();
    assert_eq!(lind_engine::CodeStore::open_in(&data, &cache).unwrap().checks, first.checks);
    fs::write(data.join("key"), b"short").unwrap();
    assert!(lind_engine::CodeStore::open_in(&data, &cache).is_err());
}
