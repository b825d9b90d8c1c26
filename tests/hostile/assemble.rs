//! Assembles hand-written modules: `lind-hostile FOLDER` writes X.wasm beside every X.wat in the
//! folder.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        let _ = writeln!(std::io::stderr(), "usage: lind-hostile FOLDER");
        return ExitCode::from(2);
    };
    match assemble(&folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "lind-hostile: {error}");
            ExitCode::FAILURE
        }
    }
}

fn assemble(folder: &PathBuf) -> Result<(), String> {
    for entry in std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))? {
        let path = entry.map_err(|e| e.to_string())?.path();
        if path.extension().is_some_and(|extension| extension == "wat") {
            let binary = wat::parse_file(&path).map_err(|e| e.to_string())?;
            std::fs::write(path.with_extension("wasm"), binary).map_err(|e| e.to_string())?;
        }
    }
    Ok(())
}
