// A program of Rust's standard library for WASI.
use std::collections::BTreeMap;
use std::io::{BufRead, Write};
fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    println!("arguments {:?} variable {:?}", words, std::env::var("GREETING"));
    let mut counts = BTreeMap::new();
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        for word in line.split_whitespace() { *counts.entry(word.to_string()).or_insert(0) += 1; }
    }
    println!("{:?}", counts);
    std::fs::create_dir_all("/made/deep").unwrap();
    std::fs::File::create("/made/deep/file").unwrap().write_all(b"text").unwrap();
    println!("{:?}", std::fs::read_to_string("/made/deep/file"));
    println!("{:?}", std::fs::metadata("/made/deep/file").map(|m| m.len()));
    println!("{:?}", std::fs::read_to_string("/absent").map_err(|e| e.kind()));
    std::fs::remove_dir_all("/made").unwrap();
    let started = std::time::Instant::now();
    std::thread::sleep(std::time::Duration::from_millis(3));
    println!("slept {}", started.elapsed().as_millis() >= 3);
    std::process::exit(9);
}
