//! `cargo xtask interop`: exchanges files with the real packages.
//!
//! Each release is installed into a virtual environment of its own and driven by a small program in `xtask/interop`.
//! Four things are shown:
//! - **we read**: the package writes a file and says what is in it; `tenfold` must see the same tensors, bit for bit;
//! - **it loads**: `tenfold` converts a file that the package, another package or the fixtures gave to the version
//!   that this package reads; the package must load the same tensors;
//! - **split**, **merged**: the package loads what `tenfold` split into several files, and what it merged again;
//! - **it runs**: onnxruntime computes the same with a model that was written again ([`onnx`]);
//! - **we show**: what `tenfold show` gives of random slices is what NumPy gives;
//! - **same file**: where a format has one canonical form, ours and theirs are equal byte by byte.
//!
//! `cargo xtask interop burn` does the same with Burn's crates ([`burn`]); it compiles them, which takes long, and is
//! not part of the others.
//!
//! `cargo xtask interop python` runs the tests of the released safetensors package against the drop-in of ours; alone, too.
//!
//! `numbers`, a group of its own, compares the figures of `stats` and `diff` with numpy's ([`numbers`]), and `digest` the
//! digests of all fixtures with those of a program that was written from `docs/digest.md` ([`digest`]).
//!
//! `scan` holds `tenfold scan` against picklescan, modelscan and fickling ([`scan`]).
//!
//! `cargo xtask interop transformers` makes a tiny model with transformers and has it load the directories that `tenfold`
//! makes of it ([`transformers`]).
//!
//! What a file should hold is never taken from `tenfold`: it is what the writing package said, or the description
//! beside the fixture. (Only for parts without a dense form, which those descriptions leave out, our digest of the
//! original is compared with the digest of what the package then loads.)

mod burn;
mod digest;
mod edit;
mod numbers;
mod onnx;
mod packages;
mod quantized;
mod scan;
mod show;
mod transformers;

use crate::Result;
use crate::held::Held;
use crate::project::{self, Project};
use packages::{METADATA_AS_TEXT, PACKAGES, Package, WITHOUT_METADATA};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs the exchanges of the packages whose format is named, or of all.
pub(crate) fn run(args: &[String]) -> Result<bool> {
    if args == ["burn"] {
        return burn::run();
    }
    if args == ["python"] {
        return crate::python::interop();
    }
    // As people call the package.
    let called = |arg: &String| if arg == "torch" { "pytorch" } else { arg }.to_owned();
    let args: &[String] = &args.iter().map(called).collect::<Vec<_>>();
    let is_known = |arg: &String| {
        SEVERAL.contains(&arg.as_str())
            || *arg == TRANSFORMERS
            || PACKAGES.iter().any(|package| package.format == *arg)
    };
    if let Some(unknown) = args.iter().find(|arg| !is_known(arg)) {
        let mut known: Vec<_> = PACKAGES.iter().map(|package| package.format).collect();
        known.dedup();
        let known = known.join(", ");
        return Err(format!(
            "no package here for {unknown:?}; there are {known}, {}, {TRANSFORMERS}, and, alone, burn and python",
            SEVERAL.join(", ")
        )
        .into());
    }
    let project = Project::find()?;
    let files = project.target.join("interop/files");
    if files.exists() {
        fs::remove_dir_all(&files)?;
    }
    fs::create_dir_all(&files)?;
    let mut exchange = Exchange {
        tenfold: project.command()?,
        programs: project.root.join("xtask/interop"),
        fixtures: project.root.join("fixtures"),
        files,
        tally: Tally::default(),
    };

    println!(
        "{:<17} {:<9} {:<70} {:>7}  result",
        "package", "direction", "file", "tensors"
    );
    let mut ready = Vec::new();
    for package in PACKAGES
        .iter()
        .filter(|p| args.is_empty() || args.iter().any(|a| a == p.format))
    {
        match project.environment(package.installs, package.build) {
            Ok(python) => ready.push((package, python)),
            Err(why) if package.is_large() => exchange.skip(package, &why.to_string()),
            Err(why) => exchange.row(package, "install", "NOT INSTALLED", Err(why)),
        }
    }
    let written: Vec<Written> = ready
        .iter()
        .flat_map(|(package, python)| exchange.read_theirs(package, python))
        .collect();
    for (package, python) in &ready {
        exchange.load_ours(package, python, &written);
        exchange.load_fixtures(package, python)?;
        exchange.same_file(package, &written);
        exchange.split_and_merge(package, python, &written);
    }
    if args.is_empty() || args.iter().any(|arg| arg == "onnx") {
        onnx::run(&project, &mut exchange)?;
    }
    if args.is_empty() || args.iter().any(|arg| arg == "show") {
        let result = show::run(&project, &exchange);
        exchange.line("numpy", "we show", "random slices of random arrays", result);
    }
    if args.is_empty() || args.iter().any(|arg| arg == "quantized") {
        quantized::run(&project, &mut exchange)?;
    }
    if args.is_empty() || args.iter().any(|arg| arg == "numbers") {
        numbers::run(&project, &mut exchange)?;
    }
    if args.is_empty() || args.iter().any(|arg| arg == "digest") {
        digest::run(&project, &mut exchange)?;
    }
    if args.is_empty() || args.iter().any(|arg| arg == "scan") {
        scan::run(&project, &mut exchange)?;
    }
    // Some gigabytes are installed for it: only where it is asked for.
    if args.iter().any(|arg| arg == TRANSFORMERS) {
        transformers::run(&project, &mut exchange)?;
    }
    Ok(exchange.tally.finish())
}

/// What is compared beside files, with NumPy: values that `show` prints, and figures of `stats` and `diff`; digests; and
/// what `scan` finds, with other scanners.
const SEVERAL: &[&str] = &["show", "numbers", "quantized", "digest", "scan"];

/// Model directories, with the package that loads them.
const TRANSFORMERS: &str = "transformers";

/// A file that a package wrote, and what the package said is in it.
struct Written {
    package: &'static Package,
    kind: &'static str,
    path: PathBuf,
    holds: Held,
}

/// The state of one run.
struct Exchange {
    tenfold: PathBuf,
    programs: PathBuf,
    fixtures: PathBuf,
    files: PathBuf,
    tally: Tally,
}

impl Exchange {
    /// Has a package write its files, and reads them. Those that could be written are returned.
    fn read_theirs(&mut self, package: &'static Package, python: &Path) -> Vec<Written> {
        let mut all = Vec::new();
        for kind in package.writes {
            let name = format!(
                "{}-{kind}.{}",
                package.release().replace(' ', "-"),
                package.extension
            );
            let path = self.files.join(&name);
            let program = self.programs.join(package.program);
            let said = project::output(
                project::python(python, &program)
                    .args(["write", kind])
                    .arg(&path),
            );
            match said.and_then(|said| Held::parse(&said)) {
                Err(why) => self.row(package, "we read", &name, Err(why)),
                Ok(holds) => {
                    let result = self.see(&path).and_then(|got| count_equal(&holds, &got));
                    self.row(package, "we read", &name, result);
                    all.push(Written {
                        package,
                        kind,
                        path,
                        holds,
                    });
                }
            }
        }
        all
    }

    /// Has a package load what we convert: its own files in all ways of writing, one file of every other package.
    fn load_ours(&mut self, package: &Package, python: &Path, written: &[Written]) {
        for file in written {
            let own = std::ptr::eq(file.package, package);
            if !own && (file.kind != "basic" || package.f32_only || package.no_bool) {
                continue;
            }
            for version in package.loads {
                // 1.2.3 takes the types of 0.1 from such a file, but not the ones that only its own version has.
                if *version != package.version() && file.kind != "basic" {
                    continue;
                }
                self.load(package, python, version, "", &file.path, &file.holds);
                if own && !file.kind.contains('-') {
                    for options in package.options {
                        self.load(package, python, version, options, &file.path, &file.holds);
                    }
                }
            }
        }
    }

    /// Has a package load the fixtures of its format, rewritten by us.
    fn load_fixtures(&mut self, package: &Package, python: &Path) -> Result<()> {
        let folder = self.fixtures.join(package.format).join("valid");
        let mut found = Vec::new();
        for entry in
            fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?
        {
            let path = entry?.path();
            let stem = stem(&path);
            let wanted = package.fixtures.iter().any(|start| stem.starts_with(start))
                && !package.except.iter().any(|(name, _)| *name == stem);
            if wanted
                && path
                    .extension()
                    .is_some_and(|extension| extension == package.extension)
            {
                found.push(path);
            }
        }
        found.sort();
        for path in found {
            match self.fixture_holds(&path) {
                Ok(Some(holds)) => self.load(package, python, package.version(), "", &path, &holds),
                Ok(None) => {}
                Err(why) => self.row(package, "it loads", &stem(&path), Err(why)),
            }
        }
        Ok(())
    }

    /// What the description beside a fixture says; nothing for a shard, which is no fixture by itself.
    fn fixture_holds(&self, path: &Path) -> Result<Option<Held>> {
        let description = path.with_extension("json");
        if !description.exists() {
            return Ok(None);
        }
        let mut holds = Held::parse(&fs::read(description)?)?;
        if holds.lacks_digests() {
            holds.add_digests(&project::output(
                self.tenfold(&["digest", "--json"]).arg(path),
            )?)?;
        }
        Ok(Some(holds))
    }

    /// Converts one file to one version with some options, and has the package load the result.
    fn load(
        &mut self,
        package: &Package,
        python: &Path,
        version: &str,
        options: &str,
        from: &Path,
        holds: &Held,
    ) {
        let what = if package.metadata_only {
            "(metadata)"
        } else {
            options
        };
        let label = format!("{} to {version} {what}", stem(from));
        let label = label.trim_end().to_owned();
        let folder = self.files.join(format!(
            "for-{}-{}",
            package.release().replace(' ', "-"),
            label.replace([' ', '='], "-"),
        ));
        // The same name: some formats have no other for their tensors.
        let to = folder.join(format!("{}.{}", stem(from), package.extension));
        if let Err(error) = fs::create_dir_all(&folder) {
            return self.row(package, "it loads", &label, Err(error.into()));
        }
        let result = self
            .convert(package, version, options, from, &to, holds)
            .and_then(|()| {
                let program = self.programs.join(package.program);
                project::output(project::python(python, &program).arg("load").arg(&to))
            })
            .and_then(|said| Held::parse(&said))
            .and_then(|got| {
                let mut want = holds.clone();
                if WITHOUT_METADATA.contains(&(package.format, version)) {
                    want.metadata = None;
                }
                if METADATA_AS_TEXT.contains(&(package.format, version)) {
                    want.metadata_as_text();
                }
                if package.metadata_only {
                    want.metadata.get_or_insert_with(|| json!({}));
                    return want
                        .metadata_difference(&got)
                        .map_or(Ok(0), |what| Err(what.into()));
                }
                count_equal(&want, &got)
            });
        self.row(package, "it loads", &label, result);
    }

    fn convert(
        &self,
        package: &Package,
        version: &str,
        options: &str,
        from: &Path,
        to: &Path,
        holds: &Held,
    ) -> Result<()> {
        let mut command = self.tenfold(&["convert", "--no-sync", "--no-progress"]);
        command
            .args(["--to", package.format, "--version", version])
            .args(options.split_whitespace());
        // What the writer does not tell of is its own affair, such as the versions of operators in ONNX.
        if holds.metadata.is_none() || WITHOUT_METADATA.contains(&(package.format, version)) {
            command.args(["--allow", "dropped"]);
        } else if METADATA_AS_TEXT.contains(&(package.format, version)) {
            command.args(["--allow", "changed"]);
        }
        project::output(command.arg(from).arg(to))?;
        let mut made = to.as_os_str().to_owned();
        if !to.exists() {
            // Several files, which their index names.
            made.push(".index.json");
        }
        project::output(self.tenfold(&["verify"]).arg(made))?;
        Ok(())
    }

    /// Compares our canonical form of a file with the package's own, where it writes one.
    fn same_file(&mut self, package: &Package, written: &[Written]) {
        for theirs in written.iter().filter(|w| std::ptr::eq(w.package, package)) {
            let Some(kind) = theirs.kind.strip_suffix("-canonical") else {
                continue;
            };
            let label = format!("{kind} in canonical form");
            let ours = self
                .files
                .join(format!("ours-{kind}-canonical.{}", package.extension));
            // From the plain file, so that nothing canonical is there to be copied.
            let plain = written
                .iter()
                .find(|w| std::ptr::eq(w.package, package) && w.kind == kind);
            let result = plain
                .ok_or_else(|| format!("{kind} was not written").into())
                .and_then(|plain| {
                    self.convert(
                        package,
                        package.version(),
                        "-O canonical=true",
                        &plain.path,
                        &ours,
                        &plain.holds,
                    )
                })
                .and_then(|()| {
                    if fs::read(&ours)? == fs::read(&theirs.path)? {
                        Ok(theirs.holds.tensors.len())
                    } else {
                        Err("the files differ".into())
                    }
                });
            self.row(package, "same file", &label, result);
        }
    }

    /// What `tenfold` sees in a file that it must also find sound.
    fn see(&self, path: &Path) -> Result<Held> {
        project::output(self.tenfold(&["verify"]).arg(path))?;
        let mut held = Held::parse(&project::output(
            self.tenfold(&["inspect", "--json"]).arg(path),
        )?)?;
        held.add_digests(&project::output(
            self.tenfold(&["digest", "--json"]).arg(path),
        )?)?;
        if held.lacks_digests() {
            Err("a tensor has no digest".into())
        } else {
            Ok(held)
        }
    }

    fn tenfold(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.tenfold);
        command.args(args);
        command
    }

    fn row(&mut self, package: &Package, direction: &str, file: &str, result: Result<usize>) {
        self.line(&package.release(), direction, file, result);
    }

    /// A package that nothing was exchanged with.
    fn skip(&mut self, package: &Package, why: &str) {
        self.tally.skipped += 1;
        let release = package.release();
        println!("{release:<17} NOT INSTALLED: NOTHING WAS EXCHANGED WITH {release}");
        eprintln!("\nWARNING: {release} IS NOT INSTALLED: {why}\n");
    }

    fn line(&mut self, with: &str, direction: &str, file: &str, result: Result<usize>) {
        let start = format!("{with:<17} {direction:<9} {file:<70}");
        self.tally.row(&start, result);
    }
}

/// Rows of a table, and how many of them were fine.
#[derive(Default)]
struct Tally {
    passed: u32,
    failed: u32,
    skipped: u32,
}

impl Tally {
    /// Ends a row with the number of tensors that were compared, or with what went wrong.
    fn row(&mut self, start: &str, result: Result<usize>) {
        match result {
            Ok(tensors) => {
                self.passed += 1;
                println!("{start} {tensors:>7}  ok");
            }
            Err(why) => {
                self.failed += 1;
                println!("{start} {:>7}  FAILED", "-");
                for line in why.to_string().lines() {
                    println!("    {line}");
                }
            }
        }
    }

    /// The last line, and whether there is nothing to complain about.
    fn finish(&self) -> bool {
        let skipped = match self.skipped {
            0 => String::new(),
            packages => format!(", {packages} PACKAGES SKIPPED"),
        };
        println!("{} passed, {} failed{skipped}", self.passed, self.failed);
        self.failed == 0
    }
}

fn stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

/// How many tensors two views of a file have in common, or every difference between them.
fn count_equal(want: &Held, got: &Held) -> Result<usize> {
    let differences = want.differences(got);
    if differences.is_empty() {
        return Ok(want.tensors.len());
    }
    Err(differences.join("\n").into())
}
