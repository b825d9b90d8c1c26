//! Facts about the installed files: grates, image, compiled code, and the users who may change
//! them.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use lind_engine::{Delivered, Engine, Seal};

use super::host::{Fact, found};
use crate::plan::found::is_module;
use crate::{config, installed};

/// The facts that need an engine.
pub fn facts(engine: &Engine) -> Vec<Fact> {
    let delivered = Delivered::of_this_program();
    let is_ready = |path: &Path| engine.is_ready(path) || delivered.as_ref().is_some_and(|code| code.names(path));
    let mut facts = vec![grates(engine, &is_ready), image(&is_ready)];
    if Delivered::is_expected() {
        facts.push(code(delivered.as_ref()));
    }
    facts
}

/// The code that came with this program.
fn code(delivered: Option<&Delivered>) -> Fact {
    const NAME: &str = "compiled code";
    const ADVICE: &str = "install lind-boot again: until then such programs are compiled when they first run";
    match delivered.map(|code| (code.count(), code.count_bad())) {
        Some((all, 0)) => Fact::fine(NAME, format!("of {all} programs, as this lind-boot was built with it")),
        Some((all, bad)) => Fact::worth(NAME, format!("of {all} programs, {bad} of it missing or changed"), ADVICE),
        None => Fact::worth(NAME, "its list is missing, or not the one that this lind-boot was built with", ADVICE),
    }
}

/// The image with the tools, and whether they are compiled already.
fn image(is_ready: &dyn Fn(&Path) -> bool) -> Fact {
    const NAME: &str = "image";
    let Ok(image) = config::root(None) else { return found(NAME, None, "make, or --image DIR") };
    let tools = image.join("bin");
    let entries = std::fs::read_dir(&tools).into_iter().flatten().flatten();
    // Many names are links to one file.
    let files = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file())).map(|entry| entry.path());
    let programs: Vec<PathBuf> = files.filter(|path| is_module(path)).collect();
    let left = programs.iter().filter(|path| !is_ready(path)).count();
    let value = format!("{}, {} programs in bin", image.display(), programs.len());
    match left {
        0 => Fact::fine(NAME, value),
        _ => Fact::worth(
            NAME,
            format!("{value}, {left} not compiled yet"),
            format!("lind-boot warm {}", tools.display()),
        ),
    }
}

fn grates(engine: &Engine, is_ready: &dyn Fn(&Path) -> bool) -> Fact {
    const NAME: &str = "grates";
    let Some(folder) = installed::grates() else {
        return Fact::wrong(NAME, "not found, and no sandbox can start without them", "make grates, or make install");
    };
    let files = std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let modules: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|suffix| suffix == "wasm")).collect();
    let (mut left, mut old) = (0, 0);
    for module in &modules {
        let compiled = module.with_extension("cwasm");
        let seal = if compiled.exists() { engine.inspect(&compiled).ok().and_then(|found| found.seal) } else { None };
        match seal {
            Some(Seal::Valid) => {}
            Some(Seal::OtherVersion) => old += 1,
            // It was compiled by another user, or is not signed.
            Some(Seal::Invalid) | None => left += usize::from(!is_ready(module)),
        }
    }
    let place = folder.display();
    match (left, old) {
        (0, 0) => Fact::fine(NAME, format!("{} in {place}", modules.len())),
        (_, 0) => {
            let value = format!("{} in {place}, {left} not compiled yet", modules.len());
            Fact::worth(NAME, value, format!("lind-boot warm {place}"))
        }
        _ => Fact::worth(NAME, format!("{old} in {place} were compiled by another version"), "make grates"),
    }
}

/// The users who may change the files: they decide what binds a guest.
pub fn owners() -> Fact {
    const NAME: &str = "installed files";
    let program = installed::program();
    // A user with write access to a directory may replace the files in it.
    let above = program.iter().flat_map(|program| program.ancestors());
    let folder = installed::grates();
    let grates = folder.iter().flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten());
    let grates = grates.map(|entry| entry.path());
    let all = above.map(Path::to_owned).chain(folder.clone()).chain(grates);
    match all.filter_map(|path| changed_by(&path).map(|user| (path, user))).next() {
        None => Fact::fine(NAME, "can be changed by root and this user alone"),
        Some((path, user)) => Fact::worth(
            NAME,
            format!("{user} can change {}, and so what a sandbox permits", path.display()),
            "install lind-boot where nobody else can write",
        ),
    }
}

/// The user other than root and this one who may change what is there, or put other files there.
fn changed_by(path: &Path) -> Option<String> {
    const STICKY: u32 = 0o1000;
    const OTHERS: u32 = 0o002;
    let found = path.symlink_metadata().ok()?;
    let (user, mode) = (found.uid(), found.mode());
    if user != 0 && user != rustix::process::geteuid().as_raw() {
        return Some(format!("user {user}"));
    }
    // With that bit a directory's entries belong to those who have made them. Links have all bits.
    let is_open = mode & OTHERS != 0 && !found.is_symlink() && !(found.is_dir() && mode & STICKY != 0);
    is_open.then(|| "everybody".to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn others_who_may_write_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        for (path, mode, is_open) in [
            (file.as_path(), 0o755, false),
            (&file, 0o757, true),
            (folder.path(), 0o755, false),
            (folder.path(), 0o1777, false),
            (folder.path(), 0o777, true),
        ] {
            std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
            assert_eq!(changed_by(path).is_some(), is_open, "{mode:o}");
        }
        assert_eq!(changed_by(&folder.path().join("missing")), None);
    }
}
