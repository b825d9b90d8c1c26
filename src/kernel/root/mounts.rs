//! The mounts at or below a root, and their description as in proc_pid_mounts(5).

/// Whether a line of proc_pid_mounts(5) is a /proc at or below `root`.
pub(super) fn proc_at_or_below(line: &[u8], root: &[u8]) -> bool {
    let mut fields = line.split(|&byte| byte == b' ');
    let Some(point) = fields.nth(1) else { return false };
    if fields.next() != Some(b"proc") {
        return false;
    }
    at_or_below(&unescape(point), root)
}

/// Whether a path is that of `root`, or of something below it.
pub(super) fn at_or_below(point: &[u8], root: &[u8]) -> bool {
    let root = root.strip_suffix(b"/").unwrap_or(root);
    point.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}

/// Spaces and the like are written as a backslash and three octal digits.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = field;
    while let Some((&byte, after)) = rest.split_first() {
        let octal = after.get(..3).filter(|_| byte == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(escaped) => {
                bytes.push(escaped);
                rest = &after[3..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    bytes
}

#[test]
fn lines_are_read_as_the_host_writes_them() {
    let below = |line: &str, root: &str| proc_at_or_below(line.as_bytes(), root.as_bytes());
    let line = "proc /a\\040b/proc proc rw,nosuid 0 0";
    assert!(below(line, "/a b"));
    assert!(below(line, "/"));
    assert!(below(line, "/a b/proc"));
    assert!(!below(line, "/a"));
    assert!(!below(line, "/a b/pro"));
    assert!(below("/dev/with\\040space /a\\043b/c proc rw 0 0", "/a#b"));
    assert!(!below("proc /proc sysfs rw 0 0", "/"));
    assert!(!below("", "/"));
}

#[test]
fn the_host_says_the_same_in_both_ways() {
    let Ok(points) = crate::host::mounts::procs() else {
        // Linux before 6.8.
        return;
    };
    let text = std::fs::read("/proc/self/mounts").unwrap();
    let lines: Vec<&[u8]> = text.split(|&byte| byte == b'\n').collect();
    let mounted = lines.iter().filter_map(|line| line.split(|&byte| byte == b' ').nth(1)).map(unescape);
    let roots: Vec<_> = mounted.chain([b"/".to_vec(), b"/pro".to_vec(), b"/proc/self".to_vec()]).collect();
    assert!(!points.is_empty() && roots.len() > 3, "there is a /proc");
    for root in roots {
        let by_text = lines.iter().any(|line| proc_at_or_below(line, &root));
        let by_id = points.iter().any(|point| at_or_below(point, &root));
        assert_eq!(by_id, by_text, "{}", String::from_utf8_lossy(&root));
    }
}
