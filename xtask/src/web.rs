//! `cargo xtask web`: builds the page of the viewer, and the page that files are dropped on; `web test` tries both.
//!
//! What is committed, `web/dist`, is built with node, and checked without: a hash of the sources is written beside it.

use crate::Result;
use crate::features;
use crate::project::{self, Project};
use sha2::{Digest, Sha256};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The files of the page, as the command carries it.
const BUILT: [&str; 4] = ["icon.svg", "index.html", "page.css", "page.js"];
/// What the page is made from, beside `src/`.
const TOOLS: [&str; 4] = [
    "build.mjs",
    "package-lock.json",
    "package.json",
    "tsconfig.json",
];
/// What would take text for markup.
const MARKUP: [&str; 6] = [
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "document.write",
    "eval(",
    "new Function",
];
/// What a page with the ten first formats may weigh, compressed, and what the page alone may.
const MOST_BYTES: usize = 400 << 10;
const MOST_PAGE: usize = 45 << 10;
const TARGET: &str = "wasm32-unknown-unknown";
/// Formats beyond the first ten.
const FURTHER: [&str; 14] = [
    "cc4s",
    "dcp",
    "flax",
    "hdf5",
    "keras",
    "mat",
    "netcdf",
    "onnx",
    "paddle",
    "pytorch",
    "raw",
    "tf_checkpoint",
    "tflite",
    "zarr",
];
/// What each of them may add.
const MOST_FURTHER: usize = 25 << 10;
/// The compiler that can build the standard library for small programs: pinned, because its options are not stable.
const NIGHTLY: &str = "nightly-2026-05-20";

pub(crate) fn run(args: &[String]) -> Result<bool> {
    let project = Project::find()?;
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => build(&project, false),
        ["--sizes"] => build(&project, true),
        ["page"] => page(&project).map(|()| true),
        ["--check"] => project::check_alone(&[], check),
        ["test"] => test(&project),
        ["shots"] => shots(&project),
        _ => Err("it is `cargo xtask web [page | --sizes | --check | test | shots]`".into()),
    }
}

/// Whether `web/dist` is what the sources give, by their hash; a step of CI that needs no node.
pub(crate) fn check(project: &Project) -> Result<Option<String>> {
    let web = project.root.join("web");
    let manifest: serde_json::Value =
        serde_json::from_slice(&fs::read(web.join("dist/manifest.json"))?)?;
    let said = |key: &str| {
        manifest
            .get(key)
            .and_then(|value| value.as_str())
            .unwrap_or_default()
            .to_owned()
    };
    if said("sources") != sources(&web)? {
        return Err("web/dist is older than its sources: `cargo xtask web` builds it".into());
    }
    if said("built") != built(&web)? {
        return Err("web/dist was changed by hand: `cargo xtask web` builds it".into());
    }
    let files = source_files(&web)?;
    for file in &files {
        let text = fs::read_to_string(file)?;
        if let Some(word) = MARKUP.iter().find(|word| text.contains(**word)) {
            return Err(format!("{} uses {word}: text must stay text", file.display()).into());
        }
    }
    let lock = fs::read_to_string(web.join("package-lock.json"))?;
    if lock.contains("\"resolved\"") {
        return Err(
            "package-lock.json names where packages came from; web/.npmrc leaves that out".into(),
        );
    }
    Ok(Some(format!("{} sources", files.len())))
}

/// The page of the command into `web/dist`.
fn page(project: &Project) -> Result<()> {
    let web = project.root.join("web");
    packages(&web)?;
    npx(&web, &["tsc", "-p", "."])?;
    node(&web, &["build.mjs", "dist"])?;
    let manifest = serde_json::json!({"sources": sources(&web)?, "built": built(&web)?});
    Ok(fs::write(
        web.join("dist/manifest.json"),
        format!("{manifest:#}\n"),
    )?)
}

/// The page of the command into `web/dist`, the drop page into `target/web`.
fn build(project: &Project, sizes: bool) -> Result<bool> {
    page(project)?;
    let web = project.root.join("web");
    let out = project.target.join("web");
    let compiler = compiler(project);
    let optimized = optimize(&web, &wasm(project, compiler, &[])?, &out)?;
    let all = optimize(&web, &wasm(project, compiler, &["all"])?, &out.join("all"))?;
    node(
        &web,
        &[
            "build.mjs",
            &out.to_string_lossy(),
            &optimized.to_string_lossy(),
            &all.to_string_lossy(),
        ],
    )?;
    let page = gzip(&web.join("dist/page.js"))?
        + gzip(&web.join("dist/page.css"))?
        + gzip(&web.join("dist/index.html"))?;
    let wasm_bytes = gzip(&optimized)?;
    println!("\n{:<34} {:>10}", "what a browser loads", "KB gzip");
    println!("{:<34} {:>10.1}", "page of the command", kilobytes(page));
    println!(
        "{:<34} {:>10.1}",
        "library, first formats",
        kilobytes(wasm_bytes)
    );
    println!(
        "{:<34} {:>10.1}",
        "page that files are dropped on",
        kilobytes(page + wasm_bytes)
    );
    println!(
        "{:<34} {:>10.1}",
        "library, all formats",
        kilobytes(gzip(&all)?)
    );
    let mut is_small = page <= MOST_PAGE && page + wasm_bytes <= MOST_BYTES;
    if !is_small {
        println!("larger than it may be: page {MOST_PAGE} bytes, all {MOST_BYTES}");
    }
    if sizes {
        for format in FURTHER {
            let larger = wasm(project, compiler, &[format])?;
            let larger = gzip(&optimize(&web, &larger, &project.target.join("web-sizes"))?)?;
            let added = larger.saturating_sub(wasm_bytes);
            is_small &= added <= MOST_FURTHER;
            println!(
                "{:<34} {:>10.1}",
                format!("{format} adds"),
                kilobytes(added)
            );
        }
    }
    println!(
        "\nfolder: {}\none file: {}",
        out.join("drop").display(),
        out.join("tenfold.html").display()
    );
    Ok(is_small)
}

fn kilobytes(bytes: usize) -> f64 {
    bytes as f64 / 1024.0
}

/// The compiler for browsers: the pinned one where rustup has it or can get it, else the one that is here.
fn compiler(project: &Project) -> Option<&'static str> {
    let install = ["toolchain", "install", NIGHTLY, "--no-self-update"];
    let minimal = ["--profile", "minimal", "--component", "rust-src"];
    let installed = Command::new("rustup").args(install).args(minimal).output();
    if installed.is_ok_and(|output| output.status.success()) {
        return Some(NIGHTLY);
    }
    println!(
        "{NIGHTLY} cannot be installed: built with stable Rust, which is about a seventh larger"
    );
    // Where it cannot be added either, cargo says so.
    features::added(project, TARGET, "the page that files are dropped on");
    None
}

/// The library for browsers, with formats beside the first ten.
fn wasm(project: &Project, compiler: Option<&str>, further: &[&str]) -> Result<PathBuf> {
    let mut cargo = match compiler {
        Some(toolchain) => {
            let mut cargo = Command::new("rustup");
            cargo.args(["run", toolchain, "cargo"]);
            cargo.current_dir(&project.root);
            cargo
        }
        None => project::cargo(&project.root),
    };
    cargo.args([
        "build",
        "--profile",
        "wasm",
        "--target",
        TARGET,
        "--package",
        "tenfold-wasm",
    ]);
    if !further.is_empty() {
        cargo.args(["--features", &further.join(",")]);
    }
    // The paths of whoever built it are no part of it. Unrolled, SHA-256 is twelve times as long.
    let mut flags = format!(
        "--remap-path-prefix={}=. --cfg sha2_backend=\"soft\" --cfg sha2_backend_soft=\"compact\"",
        project.root.display()
    );
    if compiler.is_some() {
        // Nobody sees where a panic was: the worker ends, and the page says which file did it.
        flags += " -Zunstable-options -Cpanic=immediate-abort -Zlocation-detail=none";
        cargo.args([
            "-Zbuild-std=std,panic_abort",
            "-Zbuild-std-features=optimize_for_size",
        ]);
    }
    cargo.env("RUSTFLAGS", flags);
    project::show(&mut cargo)?;
    Ok(project.target.join(TARGET).join("wasm/tenfold_wasm.wasm"))
}

fn optimize(web: &Path, wasm: &Path, out: &Path) -> Result<PathBuf> {
    fs::create_dir_all(out)?;
    let to = out.join("tenfold.wasm");
    let program = web.join("node_modules/binaryen/bin/wasm-opt");
    let mut optimizer = Command::new("node");
    optimizer.arg(program).arg("-Oz").args([
        "--enable-bulk-memory",
        "--enable-sign-ext",
        "--enable-mutable-globals",
        "--enable-nontrapping-float-to-int",
        "--enable-multivalue",
        "--enable-reference-types",
        // The first KiB is the end of the stack.
        "--low-memory-unused",
    ]);
    project::output(optimizer.arg(wasm).arg("-o").arg(&to))?;
    Ok(to)
}

/// Both deliveries in a browser: needs node and chromium.
fn test(project: &Project) -> Result<bool> {
    let web = project.root.join("web");
    packages(&web)?;
    let command = project.debug_command()?;
    let drop = project.target.join("web");
    // What was built before may be older than what is tested.
    build(project, false)?;
    let files = project.target.join("web-test");
    fs::create_dir_all(&files)?;
    let mut tests = Command::new("node");
    tests
        .current_dir(&web)
        .arg("test/run.mjs")
        .arg(&command)
        .arg(&files)
        .arg(&drop)
        .arg(project.root.join("fixtures"));
    Ok(tests.status()?.success())
}

/// How long the page takes, beside the goals: absolute times, in a browser.
pub(crate) fn bench() -> Result<bool> {
    let project = Project::find()?;
    let web = project.root.join("web");
    packages(&web)?;
    let command = project.command()?;
    build(&project, false)?;
    let files = project.target.join("web-test");
    fs::create_dir_all(&files)?;
    let mut bench = Command::new("node");
    bench
        .current_dir(&web)
        .arg("test/bench.mjs")
        .arg(&command)
        .arg(&files)
        .arg(project.target.join("web"));
    Ok(bench.status()?.success())
}

/// The pictures of the documentation.
fn shots(project: &Project) -> Result<bool> {
    let web = project.root.join("web");
    packages(&web)?;
    let command = project.debug_command()?;
    build(project, false)?;
    let files = project.target.join("web-test");
    fs::create_dir_all(&files)?;
    node(&web, &["test/files.mjs", &files.to_string_lossy()])?;
    let out = project.root.join("docs/viewer");
    node(
        &web,
        &[
            "test/shots.mjs",
            &command.to_string_lossy(),
            &files.to_string_lossy(),
            &out.to_string_lossy(),
            &project.target.join("web").to_string_lossy(),
            &project.root.join("fixtures").to_string_lossy(),
        ],
    )?;
    Ok(true)
}

/// Installs what the lock file names, unless it is there.
fn packages(web: &Path) -> Result<()> {
    let note = web.join("node_modules/.installed");
    let wanted = hash([web.join("package-lock.json")].iter(), web)?;
    if fs::read_to_string(&note).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    project::output(
        Command::new("npm")
            .args(["ci", "--ignore-scripts"])
            .current_dir(web),
    )?;
    Ok(fs::write(note, wanted)?)
}

fn npx(web: &Path, args: &[&str]) -> Result<()> {
    project::output(
        Command::new("npx")
            .arg("--no-install")
            .args(args)
            .current_dir(web),
    )
    .map(drop)
}

fn node(web: &Path, args: &[&str]) -> Result<()> {
    project::output(Command::new("node").args(args).current_dir(web)).map(drop)
}

fn gzip(file: &Path) -> Result<usize> {
    Ok(project::output(Command::new("gzip").args(["-9", "-c"]).arg(file))?.len())
}

fn source_files(web: &Path) -> Result<Vec<PathBuf>> {
    let mut files: Vec<_> = fs::read_dir(web.join("src"))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<std::io::Result<_>>()?;
    files.sort();
    Ok(files)
}

fn sources(web: &Path) -> Result<String> {
    let files = source_files(web)?;
    let tools = TOOLS.map(|name| web.join(name));
    hash(files.iter().chain(&tools), web)
}

fn built(web: &Path) -> Result<String> {
    hash(BUILT.map(|name| web.join("dist").join(name)).iter(), web)
}

/// The hash of some files: their names, their lengths and their bytes.
fn hash<'a>(files: impl Iterator<Item = &'a PathBuf>, web: &Path) -> Result<String> {
    let mut hasher = Sha256::new();
    for file in files {
        let bytes = fs::read(file)?;
        let name = file.strip_prefix(web)?.to_string_lossy().into_owned();
        hasher.update(format!("{name} {}\n", bytes.len()));
        hasher.update(&bytes);
    }
    Ok(hasher
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}
