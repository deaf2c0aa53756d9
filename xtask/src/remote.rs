//! `cargo xtask remote`: the command on URLs of real servers, each on a free port of this machine.
//!
//! What our own small server can show is in the tests of the library and of the command, which CI runs. Here are the servers
//! that people have. One that cannot be had is skipped, and said to be.

pub(crate) mod proxy;
pub(crate) mod servers;

use crate::Result;
use crate::project::{self, Project};
use proxy::{Link, Proxy};
use servers::{KEY, SECRET, Server};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// What is checked with a server; `false` where it cannot be had.
type Check = fn(&mut Checks) -> Result<bool>;

/// Servers, by their names.
const SERVERS: &[(&str, Check)] = &[
    ("s3s-fs", |checks| {
        let Some(server) = started(servers::s3s(&checks.project)) else {
            return Ok(false);
        };
        checks.store(&s3(server.port), "s3://bucket")?;
        checks.faults(&server)?;
        Ok(true)
    }),
    ("moto", |checks| {
        let Some(server) = started(servers::moto(&checks.project)) else {
            return Ok(false);
        };
        checks.store(&s3(server.port), "s3://bucket")?;
        checks.leftovers(&server)?;
        Ok(true)
    }),
    ("azurite", |checks| {
        let Some(server) = started(servers::azurite(&checks.project)) else {
            return Ok(false);
        };
        let url = format!("http://127.0.0.1:{}", server.port);
        let environment = [
            ("AZURE_STORAGE_USE_EMULATOR", "true".to_owned()),
            ("AZURITE_BLOB_STORAGE_URL", url),
        ];
        checks.store(&environment, "az://bucket")?;
        Ok(true)
    }),
    ("nginx", |checks| {
        let Some((server, tls)) = started(servers::nginx(&checks.project)) else {
            return Ok(false);
        };
        checks.web(&server, tls)?;
        Ok(true)
    }),
];

/// Files of every format that is written, by their endings.
const ENDINGS: &[&str] = &[
    "safetensors",
    "gguf",
    "zt",
    "mag",
    "npz",
    "bpk",
    "onnx",
    "pt",
    "h5",
    "tens",
    "npy",
    "mat",
    "nc",
    "msgpack",
    "pdparams",
    "zarr.zip",
];
/// Those that get one tensor: they hold no more, or not the types of the others.
const ONE_TENSOR: [&str; 4] = ["tens", "npy", "mat", "nc"];

pub(crate) fn run(args: &[String]) -> Result<bool> {
    let project = Project::find()?;
    project::status(project::cargo(&project.root).args([
        "build",
        "--quiet",
        "--package",
        "tenfold-cli",
    ]))?;
    let folder = project.target.join("servers/run/files");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let mut checks = Checks {
        tenfold: project.target.join("debug/tenfold"),
        project,
        folder,
        passed: 0,
        failed: 0,
    };
    let mut skipped = Vec::new();
    for (name, check) in SERVERS {
        if !args.is_empty() && !args.iter().any(|arg| arg == name) {
            continue;
        }
        println!("{name}");
        match check(&mut checks) {
            Ok(true) => {}
            Ok(false) => skipped.push(*name),
            Err(error) => checks.check(name, false, || error.to_string()),
        }
    }
    println!(
        "{} passed, {} failed, skipped: {}",
        checks.passed,
        checks.failed,
        if skipped.is_empty() {
            "none".to_owned()
        } else {
            skipped.join(", ")
        }
    );
    Ok(checks.failed == 0 && skipped.is_empty())
}

/// A server, if it can be had; else it is said loudly.
fn started<T>(server: Result<T>) -> Option<T> {
    server.map_err(|error| println!("  SKIPPED: {error}")).ok()
}

/// The environment that leads the command to a server with the interface of S3.
pub(crate) fn s3(port: u16) -> Vec<(&'static str, String)> {
    vec![
        ("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{port}")),
        ("AWS_ACCESS_KEY_ID", KEY.to_owned()),
        ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
        ("AWS_REGION", "us-east-1".to_owned()),
    ]
}

struct Checks {
    project: Project,
    tenfold: PathBuf,
    folder: PathBuf,
    passed: u32,
    failed: u32,
}

impl Checks {
    fn check(&mut self, what: &str, is_right: bool, more: impl FnOnce() -> String) {
        if is_right {
            self.passed += 1;
        } else {
            self.failed += 1;
            println!("  FAILED: {what}: {}", more());
        }
    }

    fn tenfold(&self, environment: &[(&str, String)], args: &[&str]) -> Result<Output> {
        let mut command = Command::new(&self.tenfold);
        command
            .args(args)
            .current_dir(&self.folder)
            .stdin(Stdio::null());
        command.envs(
            environment
                .iter()
                .map(|(name, value)| (name, value.as_str())),
        );
        Ok(command.output()?)
    }

    /// That a command succeeds, and prints the same as on a local file.
    fn same(
        &mut self,
        environment: &[(&str, String)],
        args: &[&str],
        near: &str,
        far: &str,
    ) -> Result<()> {
        let with = |file: &str| {
            args.iter()
                .map(|arg| arg.replace("FILE", file))
                .collect::<Vec<_>>()
        };
        let (ours, theirs) = (with(far), with(near));
        let refs = |args: &[String]| {
            args.iter()
                .map(String::as_str)
                .map(ToOwned::to_owned)
                .collect::<Vec<String>>()
        };
        let far_out = self.tenfold(
            environment,
            &refs(&ours).iter().map(String::as_str).collect::<Vec<_>>(),
        )?;
        let near_out = self.tenfold(
            &[],
            &refs(&theirs).iter().map(String::as_str).collect::<Vec<_>>(),
        )?;
        let shown = String::from_utf8_lossy(&far_out.stdout).replace(far, near);
        let is_same = far_out.status.code() == near_out.status.code()
            && shown == String::from_utf8_lossy(&near_out.stdout);
        self.check(&ours.join(" "), is_same, || {
            String::from_utf8_lossy(&far_out.stderr).into_owned()
        });
        Ok(())
    }

    /// That both hold the same, in whatever order.
    fn same_content(
        &mut self,
        environment: &[(&str, String)],
        near: &str,
        far: &str,
    ) -> Result<()> {
        let content = |environment, file| {
            let printed = self.tenfold(environment, &["digest", file])?.stdout;
            let printed = String::from_utf8_lossy(&printed).into_owned();
            let last = printed
                .lines()
                .last()
                .and_then(|line| line.split_whitespace().nth(1));
            Ok::<_, Box<dyn std::error::Error>>(last.map(ToOwned::to_owned))
        };
        let (ours, theirs) = (content(environment, far)?, content(&[], near)?);
        let is_same = ours.is_some() && ours == theirs;
        self.check(&format!("content of {far}"), is_same, || {
            format!("{ours:?}, not {theirs:?}")
        });
        Ok(())
    }

    fn succeeds(&mut self, environment: &[(&str, String)], args: &[&str]) -> Result<()> {
        let output = self.tenfold(environment, args)?;
        self.check(&args.join(" "), output.status.success(), || {
            String::from_utf8_lossy(&output.stderr).into_owned()
        });
        Ok(())
    }

    /// That a command fails, with these words and without a server's page.
    fn fails(&mut self, environment: &[(&str, String)], args: &[&str], words: &str) -> Result<()> {
        let output = self.tenfold(environment, args)?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let is_right =
            output.status.code() == Some(2) && said.contains(words) && !said.contains('<');
        self.check(&args.join(" "), is_right, || {
            format!("{said}, expected {words:?}")
        });
        Ok(())
    }

    /// A local file of each format, with values that all of them hold.
    fn local(&self) -> Result<Vec<String>> {
        let from = self
            .project
            .root
            .join("fixtures/safetensors/valid/medium_64k.safetensors");
        let mut files = Vec::new();
        for ending in ENDINGS {
            let name = format!("local.{ending}");
            if !self.folder.join(&name).exists() {
                let mut command = Command::new(&self.tenfold);
                command
                    .arg("convert")
                    .arg(&from)
                    .arg(&name)
                    .args(["--allow", "dropped", "--quiet"]);
                if ONE_TENSOR.contains(ending) {
                    command.args(["--include", "emb"]);
                }
                project::output(command.current_dir(&self.folder))?;
            }
            files.push(name);
        }
        Ok(files)
    }

    /// Every read command on every format, conversions both ways, and what must not be overwritten.
    fn store(&mut self, environment: &[(&str, String)], bucket: &str) -> Result<()> {
        for near in self.local()? {
            let far = format!("{bucket}/dir/{near}");
            self.succeeds(environment, &["convert", &near, &far, "--quiet"])?;
            for args in [
                &["inspect", "FILE"][..],
                &["inspect", "--json", "FILE"],
                &["verify", "FILE"],
                &["digest", "FILE"],
                &["stats", "--no-progress", "FILE"],
                &["scan", "FILE"],
                &["meta", "get", "FILE"],
                &["diff", "--no-progress", "FILE", &near],
            ] {
                self.same(environment, args, &near, &far)?;
            }
            let name = self.first_name(&near)?;
            self.same(environment, &["show", "FILE", &name], &near, &far)?;
            // Under the same name: some formats call their tensor after the file.
            fs::create_dir_all(self.folder.join("back"))?;
            let back = format!("back/{near}");
            self.succeeds(environment, &["convert", &far, &back, "--force", "--quiet"])?;
            self.same(&[], &["digest", "--json", "FILE"], &near, &back)
                .map(drop)?;
            self.fails(environment, &["convert", &near, &far], "already exists")?;
            self.succeeds(environment, &["convert", &near, &far, "--force", "--quiet"])?;
        }
        // What writes one file from others.
        let from = format!("{bucket}/dir/local.safetensors");
        let to = |name: &str| format!("{bucket}/edited/{name}.safetensors");
        let (taken, merged, renamed) = (to("taken"), to("merged"), to("renamed"));
        for args in [
            &["extract", &from, "-t", "emb", "-o", &taken][..],
            &["rename", &from, "--rule", "s/emb/other/", "-o", &renamed],
            &["merge", &taken, &renamed, "-o", &merged],
        ] {
            self.succeeds(environment, args)?;
        }
        let printed = self.tenfold(environment, &["inspect", &merged])?.stdout;
        let printed = String::from_utf8_lossy(&printed).into_owned();
        let has_both = printed.contains("emb") && printed.contains("other");
        self.check("what was merged has the tensors of both", has_both, || {
            printed
        });
        // A model of several files, and one that is larger than a part.
        let large = self.large()?;
        let model = format!("{bucket}/model/");
        self.succeeds(
            environment,
            &["split", &large, &model, "--max-size", "10MB", "--quiet"],
        )?;
        self.same_content(environment, &large, &model)?;
        let whole = format!("{bucket}/large.safetensors");
        self.succeeds(environment, &["convert", &large, &whole, "--quiet"])?;
        self.same_content(environment, &large, &whole)?;
        self.fails(environment, &["convert", &large, &whole], "already exists")?;
        self.fails(
            environment,
            &["inspect", &format!("{bucket}/nothing.npy")],
            "404",
        )?;
        self.fails(
            environment,
            &["rename", &whole, "--rule", "s/a/b/", "--in-place"],
            "at a URL",
        )?;
        let mut wrong = environment.to_vec();
        wrong.extend([("AWS_SECRET_ACCESS_KEY", "wrong".to_owned())]);
        if bucket.starts_with("s3")
            && environment.iter().any(|(_, value)| value == KEY)
            && !self.is_lenient(&wrong, &whole)?
        {
            self.fails(&wrong, &["inspect", &whole], "403")?;
        }
        Ok(())
    }

    /// The name of a tensor of a file.
    fn first_name(&self, near: &str) -> Result<String> {
        let printed = self.tenfold(&[], &["inspect", "--json", near])?.stdout;
        let document: serde_json::Value = serde_json::from_slice(&printed)?;
        let name = document
            .pointer("/tensors/0/name")
            .and_then(|name| name.as_str());
        Ok(name.ok_or("inspect lists no tensor")?.to_owned())
    }

    /// Whether a server does not look at signatures at all, as moto does not.
    fn is_lenient(&self, wrong: &[(&str, String)], url: &str) -> Result<bool> {
        Ok(self
            .tenfold(wrong, &["inspect", "--summary", url])?
            .status
            .success())
    }

    /// 40 MiB of numbers.
    fn large(&self) -> Result<String> {
        let name = "large.safetensors";
        if !self.folder.join(name).exists() {
            write_large(&self.folder.join(name), 40)?;
        }
        Ok(name.to_owned())
    }

    /// Connections that break, and servers that do not answer.
    fn faults(&mut self, server: &Server) -> Result<()> {
        let cutting = Proxy::start(
            server.port,
            Link {
                cut: 3 << 20,
                ..Link::default()
            },
        )?;
        let large = self.large()?;
        self.same_content(&s3(cutting.port), &large, "s3://bucket/large.safetensors")?;
        let (requests, _) = cutting.take();
        self.check("connections were cut", requests > 13, || {
            format!("{requests} requests")
        });
        let stalling = Proxy::start(
            server.port,
            Link {
                stall: 1 << 20,
                ..Link::default()
            },
        )?;
        for args in [
            &[
                "convert",
                "s3://bucket/large.safetensors",
                "stalled.gguf",
                "--quiet",
            ][..],
            &["digest", "s3://bucket/large.safetensors"],
        ] {
            let took = self.interrupt(&stalling, None, args)?;
            self.check(
                &format!("Ctrl-C: {}", args.join(" ")),
                took < Duration::from_millis(200),
                || format!("{took:?}"),
            );
            println!(
                "  Ctrl-C during a stalled request: back after {} ms",
                took.as_millis()
            );
        }
        // Slower than any time-out of an answer allows for: 40 MiB in five connections of 200 KB/s.
        let slow = Proxy::start(
            server.port,
            Link {
                upload_rate: 200_000,
                ..Link::default()
            },
        )?;
        let begun = Instant::now();
        self.succeeds(
            &s3(slow.port),
            &["convert", &large, "s3://bucket/slow.safetensors", "--quiet"],
        )?;
        println!("  a slow upload: {} s", begun.elapsed().as_secs());
        self.same_content(&s3(server.port), &large, "s3://bucket/slow.safetensors")?;
        let is_gone = !self.folder.join("stalled.gguf").exists();
        self.check("nothing is left", is_gone, String::new);
        Ok(())
    }

    /// How long a command takes to end after Ctrl-C, which comes when the proxy has seen so many requests, or after three seconds.
    fn interrupt(&self, proxy: &Proxy, requests: Option<u64>, args: &[&str]) -> Result<Duration> {
        let mut command = Command::new(&self.tenfold);
        command
            .args(args)
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .envs(s3(proxy.port));
        let mut child = command.spawn()?;
        match requests {
            None => thread::sleep(Duration::from_secs(3)),
            Some(requests) => {
                while proxy.requests() < requests && child.try_wait()?.is_none() {
                    thread::sleep(Duration::from_millis(5));
                }
            }
        }
        if let Some(status) = child.try_wait()? {
            return Err(format!(
                "{} ended before it was interrupted: {status}",
                args.join(" ")
            )
            .into());
        }
        let begun = Instant::now();
        project::status(Command::new("kill").args(["-INT", &child.id().to_string()]))?;
        child.wait()?;
        Ok(begun.elapsed())
    }

    /// An upload that is interrupted leaves nothing: while it is begun, while its parts are sent, and while they are put together.
    fn leftovers(&mut self, server: &Server) -> Result<()> {
        const DELAY: Duration = Duration::from_millis(700);
        let large = self.large()?;
        // The first request looks whether there is such a file. 40 MiB are five parts.
        for (when, requests) in [("its beginning", 2), ("a part", 4), ("its end", 8)] {
            let link = Link {
                delay: DELAY,
                ..Link::default()
            };
            let slow = Proxy::start(server.port, link)?;
            let args = ["convert", &large, "s3://bucket/late.safetensors", "--quiet"];
            let took = self.interrupt(&slow, Some(requests), &args)?;
            println!(
                "  Ctrl-C during an upload, at {when}: back after {} ms",
                took.as_millis()
            );
            // What is in the proxy still arrives.
            thread::sleep(4 * DELAY);
            let url = format!("http://127.0.0.1:{}/bucket?uploads", server.port);
            let uploads = project::output(Command::new("curl").args(["--silent", "--fail", &url]))?;
            let uploads = String::from_utf8_lossy(&uploads).into_owned();
            self.check(
                &format!("no upload is left, stopped at {when}"),
                !uploads.contains("<Upload>"),
                || uploads,
            );
            self.fails(
                &s3(server.port),
                &["inspect", "s3://bucket/late.safetensors"],
                "404",
            )?;
        }
        Ok(())
    }

    /// Plain and TLS, with ranges and without, and redirects.
    fn web(&mut self, server: &Server, tls: u16) -> Result<()> {
        let large = self.large()?;
        let mut files = self.local()?;
        files.push(large);
        for near in &files {
            fs::copy(
                self.folder.join(near),
                server.folder.join("files").join(near),
            )?;
        }
        let trusted = [(
            "SSL_CERT_FILE",
            server.folder.join("ca.pem").display().to_string(),
        )];
        for near in &files {
            for base in [
                format!("http://127.0.0.1:{}", server.port),
                format!("https://localhost:{tls}"),
            ] {
                for place in ["files", "whole", "led"] {
                    let far = format!("{base}/{place}/{near}");
                    for args in [
                        &["inspect", "FILE"][..],
                        &["digest", "FILE"],
                        &["verify", "FILE"],
                    ] {
                        self.same(&trusted, args, near, &far)?;
                    }
                }
            }
        }
        let hub = [
            ("HF_ENDPOINT", format!("http://127.0.0.1:{}", server.port)),
            (
                "HF_HUB_CACHE",
                self.folder.join("no-cache").display().to_string(),
            ),
            ("HF_TOKEN", SECRET.to_owned()),
        ];
        for near in &files {
            for place in ["hf://org/model", "hf://org/gated"] {
                self.same(&hub, &["inspect", "FILE"], near, &format!("{place}/{near}"))?;
            }
        }
        self.same_content(&hub, "local.safetensors", "hf://org/model")?;
        let mut nobody = hub.to_vec();
        nobody.push(("HF_TOKEN", "wrong".to_owned()));
        self.fails(&nobody, &["inspect", "hf://org/gated/local.gguf"], "401")?;
        let secret = format!(
            "http://127.0.0.1:{}/files/none.npy?signature=abc",
            server.port
        );
        self.fails(&[], &["inspect", &secret], "404")?;
        let said = self.tenfold(&[], &["inspect", "--verbose", &secret])?;
        let is_kept = !String::from_utf8_lossy(&said.stderr).contains("abc");
        self.check("signatures are not printed", is_kept, String::new);
        self.fails(
            &[("SSL_CERT_FILE", "/dev/null".to_owned())],
            &[
                "inspect",
                &format!("https://localhost:{tls}/files/local.npz"),
            ],
            "localhost",
        )?;
        self.fails(
            &trusted,
            &[
                "inspect",
                &format!("https://localhost:{tls}/down/local.npz"),
            ],
            "from https to http",
        )?;
        self.fails(
            &[],
            &[
                "convert",
                "local.npz",
                &format!("http://127.0.0.1:{}/files/new.npz", server.port),
            ],
            "not to web servers",
        )
    }
}

/// A safetensors file of so many MiB in tensors of one MiB.
pub(crate) fn write_large(path: &Path, mib: usize) -> Result<()> {
    let mut header = String::from("{");
    for n in 0..mib {
        let comma = if n == 0 { "" } else { "," };
        let (start, end) = (n << 20, (n + 1) << 20);
        header += &format!(
            r#"{comma}"layers.{n}.weight":{{"dtype":"F32","shape":[512,512],"data_offsets":[{start},{end}]}}"#
        );
    }
    header.push('}');
    header += &" ".repeat(header.len().next_multiple_of(8) - header.len());
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend(header.as_bytes());
    // Numbers that do not compress, and none that is not a number.
    let mut state = 1u32;
    for _ in 0..mib << 18 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let number = u16::try_from(state >> 16).unwrap_or_default();
        file.extend(f32::from(number).to_le_bytes());
    }
    fs::write(path, file)?;
    Ok(())
}
