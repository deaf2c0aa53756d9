//! Lists what is in a tensor file of any format, and says whether it is sound:
//! `cargo run --example list -- model.safetensors`.

#![allow(clippy::print_stdout, reason = "the list is what it prints")]

use std::process::ExitCode;

use tenfold::{Archive, Result, ops};

fn main() -> ExitCode {
    let Some(path) = std::env::args_os().nth(1) else {
        eprintln!("usage: list FILE");
        return ExitCode::from(2);
    };
    match list(path.as_ref()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // What was found, what was expected, where, and under which rule; what would help is data beside it.
            eprintln!("{error} {:?}", error.hints());
            ExitCode::from(2)
        }
    }
}

fn list(path: &std::path::Path) -> Result<bool> {
    let archive = Archive::open(path)?; // reads headers, no tensor
    let name = archive.format().map_or("no format", |format| format.name);
    println!("{name} {}", archive.version());
    for (key, value) in archive.metadata().iter() {
        println!("{key} = {value:?}");
    }
    for tensor in archive.tensors() {
        let info = tensor.info();
        println!("{} {} {:?}", tensor.name(), info.dtype, info.shape);
    }
    let verified = ops::verify(&archive, &Default::default())?;
    for finding in &verified.findings {
        println!(
            "{}: {} [{}]",
            finding.severity, finding.message, finding.rule
        );
    }
    Ok(verified.is_sound())
}
