//! The sandbox of a Kubernetes pod: a container that keeps the pod's namespaces and groups, and
//! whose program only sleeps. Its image has a program for the host, so this program sleeps instead.

use std::collections::BTreeMap;
use std::io::Read as _;

/// The word on the command line of the process that sleeps.
pub const WORD: &str = "sleep-for-pod";

/// The annotations by which engines say that a container is the sandbox of a pod.
const ANNOTATIONS: [(&str, &str); 2] =
    [("io.kubernetes.cri.container-type", "sandbox"), ("io.kubernetes.cri-o.ContainerType", "sandbox")];

/// The program of a pod's container in podman, which has no annotation of its own.
const OF_PODMAN: [&str; 2] = ["/catatonit", "-P"];

/// Whether a container with these annotations, and this program, is the sandbox of a pod.
pub fn is_sandbox(annotations: &BTreeMap<String, String>, args: &[String]) -> bool {
    let says = |name: &str, value: &str| annotations.get(name).is_some_and(|text| text == value);
    let of_podman = args == OF_PODMAN && says("io.container.manager", "libpod");
    of_podman || ANNOTATIONS.iter().any(|(name, value)| says(name, value))
}

/// Whether a container with these annotations is one of a pod of Kubernetes, or its sandbox.
pub fn is_of_kubernetes(annotations: &BTreeMap<String, String>) -> bool {
    ANNOTATIONS.iter().any(|(name, _)| annotations.contains_key(*name))
}

/// Sleeps, once a byte has come on standard input, until a signal ends this process.
pub fn sleep() -> ! {
    // Signals of the engine's terminal are not for it.
    let _ = rustix::process::setsid();
    let mut byte = [0];
    if std::io::stdin().read_exact(&mut byte).is_err() {
        // The runtime has ended before it has noted this process.
        std::process::exit(1);
    }
    loop {
        std::thread::park();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn annotations_say_so() {
        let annotated = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
        let of = |name: &str, value: &str| is_sandbox(&annotated(name, value), &[]);
        assert!(of("io.kubernetes.cri.container-type", "sandbox"));
        assert!(!of("io.kubernetes.cri.container-type", "container") && !of("other", "sandbox"));
        let pause = OF_PODMAN.map(str::to_owned);
        assert!(is_sandbox(&annotated("io.container.manager", "libpod"), &pause));
        assert!(!is_sandbox(&BTreeMap::new(), &pause));
    }
}
