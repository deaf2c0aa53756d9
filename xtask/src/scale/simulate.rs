//! What does not fit here: a million files of a petabyte, as names of a few sparse ones. Planned for real; the receipts of the
//! items are made up, and joined for real.
#![allow(clippy::indexing_slicing)] // what is not in a JSON value is null

use crate::Result;
use crate::project::Project;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;
use wait4::Wait4;

/// Tensors of a file, and bytes of each.
const TENSORS: u64 = 10;
const BYTES: u64 = 100_000_000;
/// So many names a file may have.
const NAMES: u64 = 50_000;
/// Names in a directory.
const DIRECTORY: u64 = 1000;

pub(super) fn run(args: &[String]) -> Result<bool> {
    let files: u64 = match args {
        [] => 1_000_000,
        [files] => files.parse()?,
        _ => return Err("simulate takes a number of files, and nothing else".into()),
    };
    let project = Project::find()?;
    let tenfold = project.command()?;
    let folder = project.target.join("scale/simulate");
    println!(
        "| files | tensors | bytes | items | plan, bytes | an item, bytes | lists, MiB | plan, s | plan, MiB | largest item / mean | join, s | join, MiB |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    let mut count = files / 100;
    while count <= files {
        simulate(&tenfold, &folder, count.max(100))?;
        count *= 10;
    }
    fs::remove_dir_all(&folder)?;
    Ok(true)
}

/// Sparse files under so many names.
fn tree(folder: &Path, files: u64) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder.join("models"))?;
    let tensors: Vec<_> = (0..TENSORS)
        .map(|n| {
            let (from, to) = (n * BYTES, (n + 1) * BYTES);
            format!(r#""layer.{n}.weight":{{"dtype":"U8","shape":[{BYTES}],"data_offsets":[{from},{to}]}}"#)
        })
        .collect();
    let header = format!("{{{}}}", tensors.join(","));
    let mut file = fs::File::create(folder.join("first"))?;
    for n in 0..files {
        if n % NAMES == 0 {
            let path = folder.join(format!("first-{n}"));
            file = fs::File::create(&path)?;
            file.write_all(&(header.len() as u64).to_le_bytes())?;
            file.write_all(header.as_bytes())?;
            file.set_len(8 + header.len() as u64 + TENSORS * BYTES)?;
        }
        if n % DIRECTORY == 0 {
            fs::create_dir(folder.join(format!("models/{:04}", n / DIRECTORY)))?;
        }
        let first = folder.join(format!("first-{}", n / NAMES * NAMES));
        fs::hard_link(
            first,
            folder.join(format!("models/{:04}/{n:07}.safetensors", n / DIRECTORY)),
        )?;
    }
    drop(file);
    Ok(())
}

/// How long a command takes, and its greatest memory in MiB.
fn measured(command: &mut Command) -> Result<(f64, u64)> {
    let begun = Instant::now();
    let done = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()?
        .wait4()?;
    if !done.status.success() {
        return Err(format!("{command:?}: {}", done.status).into());
    }
    Ok((begun.elapsed().as_secs_f64(), done.rusage.maxrss >> 20))
}

fn simulate(tenfold: &Path, folder: &Path, files: u64) -> Result<()> {
    tree(folder, files)?;
    let items = (files / 100).max(16);
    let mut plan = Command::new(tenfold);
    plan.current_dir(folder).args([
        "plan",
        "digest",
        "models",
        "-o",
        "plan.json",
        "--items",
        &items.to_string(),
    ]);
    let (plan_s, plan_mib) = measured(&mut plan)?;
    let text = fs::read_to_string(folder.join("plan.json"))?;
    let planned: serde_json::Value = serde_json::from_str(&text)?;
    let state = planned["state"].as_str().ok_or("no state")?.to_owned();
    let (id, all) = (
        planned["id"].as_str().ok_or("no id")?,
        planned["items"].as_array().ok_or("no items")?,
    );
    let mut largest = 0;
    let mut lists = 0;
    fs::create_dir_all(format!("{state}/receipts"))?;
    for (n, item) in all.iter().enumerate() {
        let number = |at: usize| item["inputs"][at].as_u64().unwrap_or(0);
        largest = largest.max(number(1) - number(0));
        if let Some(list) = item["list"].as_str() {
            lists += fs::metadata(format!("{state}/lists/{list}.json"))?.len();
        }
        let found: Vec<_> = (number(0)..number(1)).map(found).collect();
        let receipt = serde_json::json!({
            "schema": "tenfold.receipt/1", "plan": id, "item": n, "found": found, "seconds": 0.0, "host": "none",
        });
        fs::write(format!("{state}/receipts/{n:06}.json"), receipt.to_string())?;
    }
    let mut join = Command::new(tenfold);
    join.current_dir(folder).args(["join", "plan.json"]);
    let (join_s, join_mib) = measured(&mut join)?;
    let of_items: usize = text.lines().skip(1).map(|line| line.len() + 1).sum();
    println!(
        "| {files} | {} | {:.1e} | {} | {} | {} | {:.1} | {plan_s:.2} | {plan_mib} | {:.2} | {join_s:.2} | {join_mib} |",
        files * TENSORS,
        (files * TENSORS * BYTES) as f64,
        all.len(),
        text.len(),
        of_items / all.len().max(1),
        lists as f64 / (1u64 << 20) as f64,
        largest as f64 * all.len() as f64 / files as f64,
    );
    fs::remove_dir_all(folder)?;
    Ok(())
}

/// What an item would say of a file.
fn found(input: u64) -> serde_json::Value {
    let rows: Vec<_> = (0..TENSORS)
        .map(|n| {
            serde_json::json!({
                "name": format!("layer.{n}.weight"), "dtype": "u8", "shape": [BYTES],
                "sha256": format!("{:064x}", input * TENSORS + n),
            })
        })
        .collect();
    serde_json::json!({"input": input, "name": format!("models/{input:07}.safetensors"), "format": "safetensors", "tensors": rows})
}
