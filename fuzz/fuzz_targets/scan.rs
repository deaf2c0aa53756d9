#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tenfold_fuzz::targets::scan(data));
