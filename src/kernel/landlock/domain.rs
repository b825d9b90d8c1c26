//! Domains: the rulesets that confine a cage.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arc_swap::ArcSwapOption;
use lind_abi::{Errno, Result};

use super::access::REFER;
use super::{Node, Rule, Ruleset};
use crate::lock::Locked;

/// LANDLOCK_MAX_NUM_LAYERS
const MOST_LAYERS: usize = 16;

/// A ruleset as it was when a cage restricted itself.
#[derive(Debug)]
struct Layer {
    handled: u64,
    rules: Vec<Rule>,
}

impl Layer {
    /// The accesses in `wanted` that no rule on the way allows.
    fn missing(&self, wanted: u64, way: &[Node]) -> u64 {
        let allowed = self.rules.iter().filter(|rule| way.contains(&rule.node));
        // Nothing gets another directory above it unless a rule says so.
        wanted & (self.handled | REFER) & !allowed.fold(0, |all, rule| all | rule.allowed)
    }
}

/// The rulesets that confine a cage, the oldest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Domain(Vec<Arc<Layer>>);

impl Domain {
    /// With one more ruleset.
    ///
    /// # Errors
    /// E2BIG.
    pub fn with(&self, ruleset: &Ruleset) -> Result<Domain> {
        if self.0.len() >= MOST_LAYERS {
            return Err(Errno::E2BIG);
        }
        let layer = Arc::new(Layer { handled: ruleset.handled, rules: ruleset.rules.locked().clone() });
        Ok(Domain(self.0.iter().cloned().chain([layer]).collect()))
    }

    /// Whether all rulesets allow an access, by a rule on the way to the root.
    pub fn allows(&self, wanted: u64, way: &[Node]) -> bool {
        self.0.iter().all(|layer| layer.missing(wanted, way) == 0)
    }

    /// Whether a file has no right at the end of one way that it has not at that of the other, of
    /// those in `about`.
    pub fn gains_nothing(&self, about: u64, from: &[Node], to: &[Node]) -> bool {
        self.0.iter().all(|layer| layer.missing(about, from) & !layer.missing(about, to) == 0)
    }

    /// Whether a cage with `other` is confined at least as this one.
    pub fn is_in(&self, other: Option<&Domain>) -> bool {
        other.is_some_and(|other| {
            other.0.len() >= self.0.len() && self.0.iter().zip(&other.0).all(|(own, other)| Arc::ptr_eq(own, other))
        })
    }
}

/// The domain of a cage, if it has confined itself.
pub(crate) struct Confined {
    /// Whether there is one: most calls ask nothing else.
    is: AtomicBool,
    domain: ArcSwapOption<Domain>,
}

impl Confined {
    /// The one that a cage is born with.
    pub fn new(domain: Option<Arc<Domain>>) -> Confined {
        Confined { is: AtomicBool::new(domain.is_some()), domain: ArcSwapOption::new(domain) }
    }

    /// The domain.
    #[inline]
    pub fn get(&self) -> Option<Arc<Domain>> {
        if self.is.load(Ordering::Acquire) { self.domain.load_full() } else { None }
    }

    /// Whether there is one.
    #[inline]
    pub fn is(&self) -> bool {
        self.is.load(Ordering::Acquire)
    }

    /// Adds a ruleset. Calls of other threads that have begun go on as before.
    ///
    /// # Errors
    /// E2BIG.
    pub fn add(&self, ruleset: &Ruleset) -> Result<()> {
        let next = |now: &Option<Arc<Domain>>| now.as_deref().cloned().unwrap_or_default().with(ruleset).map(Arc::new);
        // Of two threads that add at once, both count.
        loop {
            let now = self.domain.load_full();
            let before = self.domain.compare_and_swap(&now, Some(next(&now)?));
            if before.as_ref().map(Arc::as_ptr) == now.as_ref().map(Arc::as_ptr) {
                break;
            }
        }
        self.is.store(true, Ordering::Release);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::access::{READ_FILE, WRITE_FILE};
    use super::*;

    #[test]
    fn every_ruleset_has_to_allow() {
        let way = [Node::Host(1, 3), Node::Host(1, 2), Node::Host(1, 1)];
        let ruleset = Ruleset::new(READ_FILE | WRITE_FILE);
        ruleset.add(Node::Host(1, 2), READ_FILE, None).unwrap();
        let once = Domain::default().with(&ruleset).unwrap();
        assert!(once.allows(READ_FILE, &way) && !once.allows(WRITE_FILE, &way) && !once.allows(READ_FILE, &way[2..]));
        assert!(!once.allows(REFER, &way), "it takes a rule");
        let narrow = Ruleset::new(READ_FILE);
        narrow.add(Node::Host(1, 3), READ_FILE, None).unwrap();
        let twice = once.with(&narrow).unwrap();
        assert!(twice.allows(READ_FILE, &way) && !twice.allows(READ_FILE, &way[1..]));
        assert!(once.is_in(Some(&twice)) && !twice.is_in(Some(&once)) && !once.is_in(None));
        assert!(once.gains_nothing(READ_FILE, &way, &way[2..]) && !once.gains_nothing(READ_FILE, &way[2..], &way));
    }

    #[test]
    fn layers_are_bounded() {
        let ruleset = Ruleset::new(READ_FILE);
        let confined = Confined::new(None);
        (0..MOST_LAYERS).for_each(|_| confined.add(&ruleset).unwrap());
        assert_eq!(confined.add(&ruleset), Err(Errno::E2BIG));
        assert!(confined.is());
    }
}
