//! The walls that confine the compiler process. The caller of the engine puts them up, and their
//! state is reported.

use std::os::fd::BorrowedFd;

/// Functions that put up walls and return which are up.
#[derive(Clone, Copy)]
pub struct Walls {
    /// Puts them up around the process. The cache may be read and written, and the directory of
    /// delivered code read.
    pub around: fn(cache: Option<BorrowedFd<'_>>, delivered: Option<BorrowedFd<'_>>) -> Vec<Wall>,
    /// Puts them up around each child.
    pub child: fn() -> Vec<Wall>,
    /// Whether the process compiles only if all are up.
    pub required: bool,
}

/// A wall.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wall {
    /// The name of the wall.
    pub name: String,
    /// Whether it is up; if not, the reason.
    pub up: Result<(), String>,
}

impl Wall {
    /// A wall with the result of putting it up.
    pub fn new(name: &str, up: anyhow::Result<()>) -> Wall {
        Wall { name: name.to_owned(), up: up.map_err(|error| format!("{error:#}")) }
    }
}

/// The walls that are not up, as text for people; none if all are up.
pub fn missing(walls: &[Wall]) -> Option<String> {
    let missing = |wall: &Wall| wall.up.as_ref().err().map(|why| format!("{} ({why})", wall.name));
    let missing: Vec<_> = walls.iter().filter_map(missing).collect();
    (!missing.is_empty()).then(|| missing.join(", "))
}

/// The walls as bytes to send: for each, its name and why it is not up, both ended by a zero byte.
pub fn to_bytes(walls: &[Wall]) -> Vec<u8> {
    let words = walls.iter().flat_map(|wall| [&wall.name[..], wall.up.as_ref().err().map_or("", |why| &why[..])]);
    words.flat_map(|word| word.bytes().filter(|&byte| byte != 0).chain([0])).collect()
}

/// Reads the bytes that [`Wall`]s were sent as.
pub fn of_bytes(bytes: &[u8]) -> Vec<Wall> {
    let words: Vec<_> = bytes.split(|&byte| byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    let wall = |name: &String, why: &String| {
        let up = if why.is_empty() { Ok(()) } else { Err(why.clone()) };
        Wall { name: name.clone(), up }
    };
    words.as_chunks().0.iter().map(|[name, why]| wall(name, why)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_told_as_they_are() {
        let (up, not) = (Wall::new("one", Ok(())), Wall::new("two", Err(anyhow::anyhow!("none\0 here"))));
        let missing_one = Wall { up: Err("none here".to_owned()), ..not.clone() };
        assert_eq!(of_bytes(&to_bytes(&[up.clone(), not])), [up.clone(), missing_one.clone()]);
        assert_eq!((of_bytes(b""), of_bytes(b"x")), (Vec::new(), Vec::new()));
        assert_eq!(missing(&[up.clone(), missing_one]), Some("two (none here)".to_owned()));
        assert_eq!(missing(&[up]), None);
    }
}
