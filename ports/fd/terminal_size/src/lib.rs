//! Replaces the crate `terminal_size`, which clap asks for the width of the terminal and which is
//! built on rustix. Here the C library is asked.

/// Columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Width(pub u16);

/// Lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Height(pub u16);

/// The size of the terminal that one of the standard descriptors is, if any is one and knows its
/// size.
pub fn terminal_size() -> Option<(Width, Height)> {
    [libc::STDOUT_FILENO, libc::STDERR_FILENO, libc::STDIN_FILENO].into_iter().find_map(size_of)
}

fn size_of(descriptor: i32) -> Option<(Width, Height)> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: TIOCGWINSZ writes a winsize, and nothing else.
    let answer = unsafe { libc::ioctl(descriptor, libc::TIOCGWINSZ, &mut size) };
    (answer == 0 && size.ws_col > 0 && size.ws_row > 0).then_some((Width(size.ws_col), Height(size.ws_row)))
}
