//! Converts a file, says beforehand what would be lost, and shows how far it has come:
//! `cargo run --example convert -- model.gguf model.zt`.

#![allow(clippy::print_stdout, reason = "the report is what it prints")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tenfold::format::Registry;
use tenfold::ops::{Conversion, ConvertOptions};
use tenfold::{Archive, Control, Error, Result, Work};

fn main() -> Result<()> {
    let paths: Vec<_> = std::env::args_os().skip(1).collect();
    let [from, to] = paths.as_slice() else {
        return Err(Error::argument("usage: convert FROM TO"));
    };
    convert(from.as_ref(), to.as_ref())
}

fn convert(from: &Path, to: &Path) -> Result<()> {
    let registry = Registry::standard();
    let target = registry.by_extension(&to.to_string_lossy());
    let target = target.ok_or_else(|| Error::argument("the extension names no format"))?;

    let control = Arc::new(Control::new()); // `control.cancel()` would stop it
    let options = ConvertOptions::new().work(Work::new().control(control.clone()));
    let conversion = Conversion::prepare(&Archive::open(from)?, target, &options)?;
    for loss in &conversion.losses {
        println!("{loss}"); // metadata is lost only if `ConvertOptions::allow` says so
    }

    let report = std::thread::scope(|scope| {
        let writing = scope.spawn(|| conversion.write_file(to));
        while !writing.is_finished() {
            println!("{} of {} bytes", control.done(), control.total());
            std::thread::sleep(Duration::from_millis(200));
        }
        writing.join()
    });
    let report = report.map_err(|_| Error::argument("the conversion panicked"))??;
    for (name, len) in &report.files {
        println!("{name}: {len} bytes");
    }
    Ok(())
}
