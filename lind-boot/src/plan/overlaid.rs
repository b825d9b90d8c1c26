//! Volumes with an overlay: the paths of their states, and checks of the mounts beside them.

use anyhow::{Result, bail};

use super::state::State;
use super::volume::{Tmpfs, Volume};
use crate::cli::sandbox::Options;

/// Puts overlays on all volumes if that is asked for, and prepares the places of all states.
///
/// # Errors
/// When a state cannot be at its path, or something else would be mounted inside an overlay.
pub fn settle(options: &Options, tmpfs: &[Tmpfs], volumes: &mut [Volume]) -> Result<()> {
    if let Some(folder) = &options.overlay_all {
        for (number, volume) in volumes.iter_mut().enumerate().filter(|(_, volume)| volume.can_be_changed()) {
            let state = State::parse(folder.join(format!("{number}.db")).as_os_str())?;
            volume.overlay = volume.host.is_dir().then_some(state);
            volume.read_only = true;
        }
    }
    settle_states(volumes)?;
    for overlay in volumes.iter().filter(|volume| volume.overlay.is_some()) {
        ensure_alone(overlay, tmpfs, volumes)?;
    }
    ensure_hidden(volumes)
}

/// The same for a container, which may have mounts inside its overlay.
///
/// # Errors
/// When its state cannot be at its path.
pub fn settle_container(volumes: &mut [Volume]) -> Result<()> {
    settle_states(volumes)?;
    ensure_hidden(volumes)
}

fn settle_states(volumes: &mut [Volume]) -> Result<()> {
    for state in volumes.iter_mut().filter_map(|volume| volume.overlay.as_mut()) {
        state.make_folder()?;
        state.settle()?;
        if state.file.is_file() {
            state.ensure_one(true)?;
        }
    }
    Ok(())
}

/// Refuses a state that a volume shows.
fn ensure_hidden(volumes: &[Volume]) -> Result<()> {
    for state in volumes.iter().filter_map(|volume| volume.overlay.as_ref()) {
        let seen = |volume: &&Volume| state.is_shown_by(&volume.host);
        if let Some(volume) = volumes.iter().find(seen) {
            bail!(
                "-v {}: the overlay's state {} would be visible there; keep the state elsewhere",
                volume.host.display(),
                state.file.display()
            );
        }
    }
    Ok(())
}

/// Refuses mounts inside an overlay: its grate answers for all that is below, and would take them
/// for a part of its directory.
fn ensure_alone(overlay: &Volume, tmpfs: &[Tmpfs], volumes: &[Volume]) -> Result<()> {
    let others = volumes.iter().filter(|volume| !std::ptr::eq(*volume, overlay)).map(|volume| &volume.guest);
    let mut places = others.chain(tmpfs.iter().map(|tmpfs| &tmpfs.guest));
    match places.find(|place| place.starts_with(&overlay.guest)) {
        Some(place) => bail!(
            "-v {}:overlay: {} cannot be mounted inside the overlay; mount it elsewhere",
            overlay.host.display(),
            place.display()
        ),
        None => Ok(()),
    }
}
