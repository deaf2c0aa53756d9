//! Reading over a link with a delay: requests, bytes and seconds beside what people would use instead.

use crate::Result;
use crate::project::{self, Project};
use crate::remote::proxy::{Link, Proxy};
use crate::remote::{s3, servers, write_large};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// What the link adds to a round trip, and carries on one connection.
const DELAY: Duration = Duration::from_millis(40);
const RATE: u64 = 50_000_000;
const SHARDS: usize = 200;
/// Of the time that a download takes.
const GOAL: f64 = 0.4;

/// Opening shards by their index, of the time that one after the other takes.
const GOAL_OF_SHARDS: f64 = 1.0 / 15.0;

/// Runs all of it and prints a table in Markdown; `false` where something could not be compared.
pub(crate) fn run(quick: bool) -> Result<bool> {
    let project = Project::find()?;
    // The network is what takes time: linking all as one would take minutes and change nothing.
    let profile = if quick {
        println!("A quick run: small inputs, a debug build.\n");
        "dev"
    } else {
        "release-test"
    };
    let mut build = project::cargo(&project.root);
    build.args([
        "build",
        "--quiet",
        "--package",
        "tenfold-cli",
        "--profile",
        profile,
    ]);
    project::status(&mut build)?;
    let folder = if quick { "debug" } else { profile };
    let tenfold = project.target.join(folder).join("tenfold");
    let packages = [
        "fsspec",
        "aiohttp",
        "huggingface_hub",
        "s3fs",
        "safetensors",
        "numpy",
    ];
    let python = project.environment(&packages, None);
    let link = Link {
        delay: DELAY,
        rate: RATE,
        upload_rate: RATE,
        ..Link::default()
    };
    let (server, _) = servers::nginx(&project)?;
    let proxy = Proxy::start(server.port, link)?;
    let files = server.folder.join("files");
    let mib = if quick { 32 } else { 256 };
    write_large(&files.join("large.safetensors"), mib)?;
    many(&files.join("many.safetensors"), 1000)?;
    many(&files.join("very-many.safetensors"), 100_000)?;
    let shards = shards(&tenfold, &files)?;
    let url = |name: &str| format!("http://127.0.0.1:{}/files/{name}", proxy.port);
    let out = project.target.join("bench");
    fs::create_dir_all(&out)?;
    let mut bench = Remote {
        proxy: proxy.clone(),
        tenfold,
        python: python.ok(),
        script: project.root.join("xtask/bench/remote.py"),
        out,
        is_complete: true,
    };
    println!(
        "A link with {} ms a round trip and {} MB/s a connection.\n",
        DELAY.as_millis(),
        RATE / 1_000_000
    );
    println!("| what | who | requests | MB received | s |");
    println!("|---|---|---|---|---|");
    for (what, file) in [
        ("header of 1 000 tensors", "many.safetensors"),
        ("header of 100 000 tensors", "very-many.safetensors"),
    ] {
        bench.ours(what, &["inspect", "--summary", &url(file)])?;
        bench.theirs(what, "fsspec", &["fsspec", &url(file)]);
        bench.theirs(
            what,
            "huggingface_hub",
            &["hub", &format!("http://127.0.0.1:{}", proxy.port), file],
        );
    }
    let what = "header and one tensor of 1 000";
    bench.ours(
        what,
        &["show", &url("many.safetensors"), "layers.500.weight"],
    )?;
    bench.theirs(
        what,
        "fsspec, safetensors",
        &["tensor", &url("many.safetensors"), "layers.500.weight"],
    );
    let at_once = bench.ours(
        "open 200 shards by their index",
        &[
            "inspect",
            "--summary",
            &url("shards/model.safetensors.index.json"),
        ],
    )?;
    let urls: Vec<_> = shards
        .iter()
        .map(|name| url(&format!("shards/{name}")))
        .collect();
    let mut args = vec!["inspect", "--summary"];
    args.extend(urls.iter().map(String::as_str));
    let in_turn = bench.ours("open 200 shards one after the other", &args)?;
    let what = format!("convert {mib} MiB to a local GGUF file");
    let gguf = bench.out.join("far.gguf").display().to_string();
    let converted = bench.ours(
        &what,
        &[
            "convert",
            &url("large.safetensors"),
            &gguf,
            "--force",
            "--no-progress",
            "--quiet",
            "--no-sync",
        ],
    )?;
    let what = format!("download {mib} MiB");
    let local = bench.out.join("far.safetensors");
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--fail", "--output"])
        .arg(&local)
        .arg(url("large.safetensors"));
    let downloaded = bench.row(&what, "curl, one connection", &mut curl)?;
    bench.buckets(&project, link, &files, mib)?;
    let ratio = converted.as_secs_f64() / downloaded.as_secs_f64();
    println!("\nConverting takes {ratio:.2} of the time of the download (goal {GOAL}).");
    let ratio = at_once.as_secs_f64() / in_turn.as_secs_f64();
    println!(
        "Shards by their index take {ratio:.3} of the time of one after the other (goal {GOAL_OF_SHARDS:.3})."
    );
    Ok(bench.is_complete)
}

struct Remote {
    proxy: Proxy,
    tenfold: PathBuf,
    python: Option<PathBuf>,
    script: PathBuf,
    out: PathBuf,
    /// Whether every comparison was made.
    is_complete: bool,
}

impl Remote {
    /// The same over the interface of S3, to a bucket and from it.
    fn buckets(&mut self, project: &Project, link: Link, files: &Path, mib: usize) -> Result<()> {
        let server = servers::s3s(project)?;
        self.proxy = Proxy::start(server.port, link)?;
        let endpoint = format!("http://127.0.0.1:{}", self.proxy.port);
        let local = |name: &str| files.join(name).display().to_string();
        let large = local("large.safetensors");
        let what = format!("upload {mib} MiB as GGUF");
        self.ours(
            &what,
            &[
                "convert",
                &large,
                "s3://bucket/x.gguf",
                "--quiet",
                "--no-progress",
            ],
        )?;
        let what = format!("upload {mib} MiB");
        self.theirs(
            &what,
            "s3fs",
            &["put", &endpoint, &large, "bucket/y.safetensors"],
        );
        // Put there through the interface: of what is copied in by hand, the server hashes all of it for every request.
        let many = local("very-many.safetensors");
        self.theirs(
            "upload the next file",
            "s3fs",
            &["put", &endpoint, &many, "bucket/many.safetensors"],
        );
        let what = "header of 100 000 tensors in a bucket";
        self.ours(
            what,
            &["inspect", "--summary", "s3://bucket/many.safetensors"],
        )?;
        self.theirs(what, "s3fs", &["s3", &endpoint, "bucket/many.safetensors"]);
        Ok(())
    }

    fn ours(&self, what: &str, args: &[&str]) -> Result<Duration> {
        let mut command = Command::new(&self.tenfold);
        command.args(args).envs(s3(self.proxy.port));
        self.row(what, "tenfold", &mut command)
    }

    fn theirs(&mut self, what: &str, who: &str, args: &[&str]) {
        let Some(python) = &self.python else {
            println!("| {what} | {who} | SKIPPED: its package cannot be installed | | |");
            self.is_complete = false;
            return;
        };
        if let Err(error) = self.row(what, who, project::python(python, &self.script).args(args)) {
            println!(
                "| {what} | {who} | FAILED: {} | | |",
                error.to_string().lines().last().unwrap_or_default()
            );
            self.is_complete = false;
        }
    }

    fn row(&self, what: &str, who: &str, command: &mut Command) -> Result<Duration> {
        self.proxy.take();
        let begun = Instant::now();
        let printed = project::output(command)?;
        let mut took = begun.elapsed();
        // Python says how long it took without its start.
        if let Some(seconds) = String::from_utf8_lossy(&printed)
            .trim()
            .strip_prefix("seconds ")
        {
            took = Duration::from_secs_f64(seconds.parse()?);
        }
        let (requests, received) = self.proxy.take();
        let (mb, seconds) = (received as f64 / 1e6, took.as_secs_f64());
        println!("| {what} | {who} | {requests} | {mb:.2} | {seconds:.2} |");
        Ok(took)
    }
}

/// A file of many tensors of 16 KiB, or of one number where they are very many.
fn many(path: &Path, tensors: usize) -> Result<()> {
    let numbers = if tensors > 10_000 { 1 } else { 4096 };
    let len = numbers * 4;
    let mut header = String::from("{");
    for n in 0..tensors {
        let comma = if n == 0 { "" } else { "," };
        let (start, end) = (n * len, (n + 1) * len);
        header += &format!(
            r#"{comma}"layers.{n}.weight":{{"dtype":"F32","shape":[{numbers}],"data_offsets":[{start},{end}]}}"#
        );
    }
    header.push('}');
    header += &" ".repeat(header.len().next_multiple_of(8) - header.len());
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    file.resize(file.len() + tensors * len, 0);
    fs::write(path, file)?;
    Ok(())
}

/// A model of many files with an index; the names of the files.
fn shards(tenfold: &Path, files: &Path) -> Result<Vec<String>> {
    let whole = files.join("whole.safetensors");
    many(&whole, SHARDS)?;
    let shards = files.join("shards/");
    let mut split = Command::new(tenfold);
    let parts = SHARDS.to_string();
    split
        .arg("split")
        .arg(&whole)
        .arg("-o")
        .arg(format!("{}/", shards.display()))
        .args(["--parts", &parts, "--quiet", "--no-sync"]);
    project::output(&mut split)?;
    let index = fs::read_dir(&shards)?
        .flatten()
        .find(|file| file.file_name().to_string_lossy().ends_with(".index.json"));
    let index = index.ok_or("split wrote no index")?;
    fs::rename(index.path(), shards.join("model.safetensors.index.json"))?;
    let names = fs::read_dir(&shards)?.flatten();
    let names = names.map(|file| file.file_name().to_string_lossy().into_owned());
    let mut names: Vec<_> = names
        .filter(|name| name.ends_with(".safetensors"))
        .collect();
    names.sort();
    Ok(names)
}
