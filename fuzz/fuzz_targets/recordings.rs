#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| dray_fuzz::recordings(bytes));
