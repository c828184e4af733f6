//! The decoder that `DHOLE_DECODER` names, under libFuzzer.
#![no_main]

use std::sync::OnceLock;

use decoders::ALL;

#[path = "../../conformance/src/decoders.rs"]
mod decoders;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    static DECODER: OnceLock<fn(&[u8])> = OnceLock::new();
    let decode = DECODER.get_or_init(|| {
        let wanted = std::env::var("DHOLE_DECODER").unwrap_or_default();
        let found = ALL.iter().find(|(name, _)| *name == wanted);
        let names = ALL.map(|(name, _)| name).join(", ");
        found
            .unwrap_or_else(|| panic!("DHOLE_DECODER={wanted}: one of {names} is expected"))
            .1
    });
    decode(bytes);
});
