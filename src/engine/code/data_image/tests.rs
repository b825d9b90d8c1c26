//! Tests data images with sections as `lind-passes` writes them, and with malformed ones.

use super::*;

const HEAP_BASE: u32 = 0x20000 + 100;

/// A module with these sections.
fn module(sections: &[Vec<u8>]) -> Vec<u8> {
    let hex = |bytes: &Vec<u8>| bytes.iter().map(|byte| format!("\\{byte:02x}")).collect::<String>();
    let sections: String = sections.iter().map(|bytes| format!("(@custom \"{SECTION}\" \"{}\")", hex(bytes))).collect();
    wat::parse_str(format!("(module {sections})")).unwrap()
}

fn section(words: &[u32], pages: u64) -> Vec<u8> {
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.resize(bytes.len() + usize::try_from(pages * PAGE).unwrap(), 7);
    bytes
}

#[test]
fn a_section_is_read_and_its_layout_kept() {
    let wasm = module(&[section(&[65540, 2, 16, 2, 32, 1], 3)]);
    let image = DataImage::of(&wasm, HEAP_BASE).unwrap();
    assert_eq!(image.layout.spans, [Span { first: 16, pages: 2 }, Span { first: 32, pages: 1 }]);
    assert_eq!(image.layout.tls_base.unwrap().get(), 65540);
    assert_eq!(image.pages, [7; 3 * 4096]);
    let file = tempfile::tempfile().unwrap();
    let bytes = image.layout.to_bytes();
    file.write_all_at(&[&[9; 3], &bytes[..]].concat(), 0).unwrap();
    let read = Layout::read(&file, 3 + bytes.len() as u64).unwrap();
    assert_eq!(read, Some((image.layout, bytes.len() as u64)));
    assert_eq!(DataImage::of(&module(&[]), HEAP_BASE).unwrap(), DataImage::default());
}

#[test]
fn what_lies_elsewhere_or_is_not_there_is_refused() {
    let good = section(&[0, 1, 16, 1], 1);
    assert!(DataImage::of(&module(std::slice::from_ref(&good)), HEAP_BASE).is_ok());
    let mut long = good.clone();
    long.push(0);
    for (what, sections) in [
        ("nothing", vec![vec![]]),
        ("half a head", vec![vec![0; 7]]),
        ("two sections", vec![good.clone(), good.clone()]),
        ("no spans", vec![section(&[0, 0], 0)]),
        ("many spans", vec![section(&[[0, 33].to_vec(), [16, 1].repeat(33)].concat(), 33)]),
        ("more spans than there are", vec![section(&[0, 2, 16, 1], 0)]),
        ("a count without end", vec![section(&[0, u32::MAX, 16, 1], 1)]),
        ("an empty span", vec![section(&[0, 1, 16, 0], 0)]),
        ("a span below the data", vec![section(&[0, 1, 15, 1], 1)]),
        ("a span in the heap", vec![section(&[0, 1, 32, 2], 2)]),
        ("a span beyond memory", vec![section(&[0, 1, u32::MAX, u32::MAX], 1)]),
        ("spans that overlap", vec![section(&[0, 2, 16, 2, 17, 1], 3)]),
        ("spans that descend", vec![section(&[0, 2, 18, 1, 16, 1], 2)]),
        ("a page too few", vec![section(&[0, 1, 16, 2], 1)]),
        ("a page too many", vec![section(&[0, 1, 16, 1], 2)]),
        ("a byte too many", vec![long]),
    ] {
        assert!(DataImage::of(&module(&sections), HEAP_BASE).is_err(), "{what}");
    }
    for end in 0..good.len() {
        assert!(DataImage::of(&module(&[good[..end].to_vec()]), HEAP_BASE).is_err(), "{end} bytes");
    }
}
