//! Random operations on pieces and on a naive model that keeps one entry per page.

use super::*;
use crate::mem::PAGE;
use crate::mem::random::Random;

const PAGES: u64 = 64;

/// For each page: its layer, and its number in that.
type Model = Vec<Option<(usize, u64)>>;

fn agree(frozen: &Frozen, model: &Model, layers: &[Arc<Layer>]) {
    let mut seen: Model = vec![None; model.len()];
    let mut before: Option<Piece> = None;
    for piece in frozen.parts(0..PAGES * PAGE) {
        if let Some(before) = &before {
            assert!(before.at.end <= piece.at.start && !before.goes_on_as(&piece));
        }
        let layer = layers.iter().position(|layer| Arc::ptr_eq(layer, &piece.layer)).unwrap();
        for page in piece.at.start / PAGE..piece.at.end / PAGE {
            let inside = page - piece.at.start / PAGE;
            seen[usize::try_from(page).unwrap()] = Some((layer, piece.offset / PAGE + inside));
        }
        before = Some(piece);
    }
    assert_eq!(&seen, model);
    let bytes = |layer| model.iter().flatten().filter(|(of, _)| *of == layer).count() as u64 * PAGE;
    for (layer, found) in frozen.layers() {
        assert_eq!(found, bytes(layers.iter().position(|other| Arc::ptr_eq(other, &layer)).unwrap()));
    }
}

#[test]
fn random_operations_agree_with_a_page_by_page_model() {
    let mut random = Random::seeded();
    let made = Layers::default();
    let layers: Vec<_> = (0..3).map(|_| Arc::new(made.make(PAGES * PAGE, |_| Ok(())).unwrap())).collect();
    for _ in 0..200 {
        let mut frozen = Frozen::default();
        let mut model: Model = vec![None; usize::try_from(PAGES).unwrap()];
        for _ in 0..100 {
            let start = random.below(PAGES);
            let end = start + 1 + random.below(PAGES - start);
            let (range, slots) =
                (start * PAGE..end * PAGE, usize::try_from(start).unwrap()..usize::try_from(end).unwrap());
            if random.below(3) == 0 {
                let part = frozen.bytes(range.clone());
                assert_eq!(part, model[slots.clone()].iter().flatten().count() as u64 * PAGE);
                frozen.carve(range);
                model[slots].fill(None);
            } else {
                let layer = usize::try_from(random.below(3)).unwrap();
                // Often such that it goes on from what is before it.
                let offset = if random.below(2) == 0 { start } else { random.below(PAGES) };
                frozen.carve(range.clone());
                frozen.insert(Piece { at: range, layer: Arc::clone(&layers[layer]), offset: offset * PAGE });
                for (page, slot) in (offset..).zip(&mut model[slots]) {
                    *slot = Some((layer, page));
                }
            }
            agree(&frozen, &model, &layers);
        }
    }
    drop(layers);
    assert_eq!(made.count(), 0);
}

#[test]
fn a_layer_cannot_be_written_and_there_are_not_too_many() {
    let made = Layers::default();
    let layer = made.make(PAGE, |file| rustix::io::pwrite(file, b"ice", 0).map(|_| ()).map_err(host::errno)).unwrap();
    assert_eq!(rustix::io::pwrite(layer.file(), b"fire", 0), Err(rustix::io::Errno::PERM));
    assert_eq!(rustix::fs::ftruncate(layer.file(), 0), Err(rustix::io::Errno::PERM));
    let mut all = vec![layer];
    while let Ok(layer) = made.make(PAGE, |_| Ok(())) {
        all.push(layer);
    }
    assert_eq!(all.len(), Layers::MOST);
    drop(all);
    assert!(made.make(PAGE, |_| Ok(())).is_ok());
}
