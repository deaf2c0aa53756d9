//! `cargo xtask scale`: plans carried out by real engines, one after the other, each started and ended here. The programs are
//! those of `examples/`, and a task is killed in each. `cargo xtask scale simulate` plans what does not fit here.

mod simulate;
mod slurm;

use crate::Result;
use crate::project::{self, Project};
use crate::python::Packages;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How many shards there are, and into how many items they are cut.
const SHARDS: u32 = 64;
const ITEMS: u32 = 8;
/// Which of them is killed.
const KILLED: u32 = 3;

/// Kills the process that does an item for the first time, in whatever interpreter an engine starts.
const KILLER: &str = r#"
import os, signal
try:
    import tenfold
    inner = tenfold.Plan.run
    # Bound methods are sent by their names.
    def run(self, item, **options):
        if item == 3 and not os.path.exists(os.environ["TENFOLD_KILLED"]):
            open(os.environ["TENFOLD_KILLED"], "x").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return inner(self, item, **options)
    tenfold.Plan.run = run
except ImportError:
    pass
"#;

/// `false` where it cannot be had.
type Engine = fn(&Work<'_>) -> Result<bool>;

const ENGINES: &[(&str, Engine)] = &[
    ("slurm", slurm::run),
    ("ray", |work| work.python("ray", &["ray"])),
    ("dask", |work| work.python("dask", &["dask", "distributed"])),
];

/// Runs the engines of these names, or all.
pub(crate) fn run(args: &[String]) -> Result<bool> {
    if args.first().is_some_and(|first| first == "simulate") {
        return simulate::run(args.get(1..).unwrap_or_default());
    }
    let project = Project::find()?;
    let tenfold = project.debug_command()?;
    let mut is_good = true;
    for (name, engine) in ENGINES {
        if !args.is_empty() && !args.iter().any(|arg| arg == name) {
            continue;
        }
        let work = Work::new(&project, &tenfold, name)?;
        let begun = Instant::now();
        match engine(&work) {
            Ok(true) => println!(
                "{name}: as one process, in {:.1} s",
                begun.elapsed().as_secs_f64()
            ),
            Ok(false) => eprintln!("\nWARNING: {name} WAS NOT TESTED: it cannot be had here\n"),
            Err(error) => {
                println!("{name}: {error}");
                is_good = false;
            }
        }
    }
    Ok(is_good)
}

/// What an engine is given to do.
struct Work<'p> {
    project: &'p Project,
    tenfold: PathBuf,
    folder: PathBuf,
    /// What one process prints.
    expected: Vec<u8>,
}

impl<'p> Work<'p> {
    fn new(project: &'p Project, tenfold: &Path, name: &str) -> Result<Self> {
        let folder = project.target.join("scale").join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(folder.join("models"))?;
        for n in 0..SHARDS {
            let header = format!(
                r#"{{"shard.{n}":{{"dtype":"U8","shape":[250000],"data_offsets":[0,250000]}}}}"#
            );
            let mut file = (header.len() as u64).to_le_bytes().to_vec();
            file.extend_from_slice(header.as_bytes());
            file.extend((0..250_000u32).map(|i| (i * (n + 1) / 7).to_le_bytes()[0]));
            fs::write(folder.join(format!("models/m{n:02}.safetensors")), file)?;
        }
        let work = Self {
            project,
            tenfold: tenfold.to_owned(),
            expected: Vec::new(),
            folder,
        };
        let plan = ["plan", "digest", "models", "-o", "plan.json", "--items"];
        project::output(work.command().args(plan).arg(ITEMS.to_string()))?;
        let mut one = work.command();
        one.arg("digest");
        for n in 0..SHARDS {
            one.arg(format!("models/m{n:02}.safetensors"));
        }
        let expected = project::output(&mut one)?;
        Ok(Self { expected, ..work })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.tenfold);
        command.current_dir(&self.folder);
        command
    }

    /// Compares what `join` prints with what one process does.
    fn compare(&self) -> Result<()> {
        let joined = project::output(self.command().args(["join", "plan.json"]))?;
        if joined != self.expected {
            return Err("join does not print what one process prints".into());
        }
        if !self.folder.join("killed").exists() {
            return Err("nothing was killed".into());
        }
        Ok(())
    }

    /// An engine from PyPI, whose worker kills itself once.
    fn python(&self, name: &str, wanted: &[&str]) -> Result<bool> {
        let Some(python) = crate::python::find_python()? else {
            return Ok(false);
        };
        let list = [&["maturin>=1.14,<2"], wanted].concat();
        let packages = match Packages::install(self.project, &python, name, &list) {
            Ok(packages) => packages,
            Err(error) => {
                eprintln!("{error}");
                return Ok(false);
            }
        };
        packages.build("dev")?;
        let killer = self.folder.join("killer");
        fs::create_dir_all(&killer)?;
        fs::write(killer.join("sitecustomize.py"), KILLER)?;
        let example = self.project.root.join(format!("examples/{name}/run.py"));
        let run = || {
            let mut command = packages.python(&[]);
            command
                .arg(&example)
                .arg("plan.json")
                .current_dir(&self.folder)
                .env("PYTHONPATH", &killer)
                .env("TENFOLD_KILLED", self.folder.join("killed"))
                .stdin(Stdio::null());
            project::output(&mut command)
        };
        // A loaded machine may start an engine too slowly for it.
        run().or_else(|error| {
            eprintln!("{name} is tried again: {error}");
            run()
        })?;
        self.compare()?;
        Ok(true)
    }
}

/// Waits until something is true.
fn until(what: &str, mut is_true: impl FnMut() -> Result<bool>) -> Result<()> {
    const LONGEST: Duration = Duration::from_secs(120);
    let begun = Instant::now();
    while begun.elapsed() < LONGEST {
        if is_true()? {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    Err(format!("{what} did not happen in two minutes").into())
}
