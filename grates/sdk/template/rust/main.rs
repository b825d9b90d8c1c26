//! Gives the machine another name.

use std::sync::OnceLock;

use lind_grate::prelude::*;

/// The value of `--name`.
static NAME: OnceLock<String> = OnceLock::new();

fn set_name(value: &str) -> std::result::Result<(), String> {
    if value.len() >= Utsname::default().nodename.len() {
        return Err("too long for a name".to_owned());
    }
    NAME.set(value.to_owned()).map_err(|_| "the option was given twice".to_owned())
}

options!(static OPTIONS = {
    'n' "name" "NAME" value: set_name, "give the machine this name (default: @NAME@)";
});

/// The kernel fills a struct of ours, and the client gets a changed copy.
fn on_uname(cx: &Cx, buf: Out<Utsname>) -> Result<()> {
    let mut answer = Utsname::default();
    calls::uname::forward(cx, &mut answer)?;
    let name = NAME.get().map_or("@NAME@", String::as_str).as_bytes();
    answer.nodename = [0; 65];
    answer.nodename[..name.len()].copy_from_slice(name);
    cx.store(buf, &answer)
}

calls!(static CALLS = { alters uname: on_uname });

fn main() {
    GrateBuilder::new("Gives the machine another name.").options(&OPTIONS).calls(&CALLS).run()
}
