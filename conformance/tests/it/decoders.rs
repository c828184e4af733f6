//! Replays the corpus of the fuzzers: every input that reached new code, and every finding.

use std::fs;
use std::path::{Path, PathBuf};

use conformance::decoders::ALL;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus")
}

#[test]
fn every_decoder_keeps_its_promises_on_every_input_that_is_kept() {
    for (name, decode) in ALL {
        let folder = corpus().join(name);
        let files = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        let mut files: Vec<PathBuf> = files.map(|file| file.unwrap().path()).collect();
        files.sort();
        assert!(!files.is_empty(), "no inputs in {}", folder.display());
        for file in files {
            let bytes = fs::read(&file).unwrap();
            let kept = std::panic::catch_unwind(|| decode(&bytes));
            assert!(kept.is_ok(), "{} breaks {name}", file.display());
        }
    }
}

#[test]
fn every_corpus_has_its_decoder_and_all_are_small() {
    const MOST_BYTES: u64 = 1 << 20;
    let mut bytes = 0;
    for folder in fs::read_dir(corpus()).unwrap() {
        let folder = folder.unwrap();
        let name = folder.file_name().into_string().unwrap();
        assert!(ALL.iter().any(|(decoder, _)| *decoder == name), "{name}");
        let files = fs::read_dir(folder.path()).unwrap();
        bytes += files
            .map(|file| file.unwrap().metadata().unwrap().len())
            .sum::<u64>();
    }
    assert!(bytes < MOST_BYTES, "{bytes} bytes are kept");
}
