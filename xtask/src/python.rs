//! `cargo xtask python`: the Python package, built and tested in virtual environments below `target/python`.
//!
//! The quick part is a step of CI: NumPy, all golden files, slices, lifetimes, threads, signals, memory, stubs and types. The
//! full run adds PyTorch, JAX, the reference packages, 10 000 changed files, the same wheel in the other interpreters that are
//! here, and TensorFlow and MLX where they can be installed. `cargo xtask python notebook` shows what notebooks show,
//! `cargo xtask python interrupt` how long work goes on after Ctrl-C. `cargo xtask wheel` builds what people
//! install, `cargo xtask interop python` runs the tests of the released safetensors against ours, and
//! `cargo xtask bench python` measures beside it.

use crate::Result;
use crate::project::{self, Project};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What the quick part needs.
const QUICK: &[&str] = &[
    "fsspec",
    "hypothesis",
    "maturin>=1.14,<2",
    "ml_dtypes",
    // What a later version would complain about is no change of ours.
    "mypy~=2.4.1",
    "numpy",
    "pyright==1.1.414",
    "pytest",
    "ruff~=0.17.5",
    "scipy",
];

/// What the full run needs beside it.
const FULL: &[&str] = &[
    "flax",
    "gguf",
    "h5py",
    "jax",
    "safetensors",
    "torch",
    "tqdm",
];

/// What the tests need in another interpreter.
const PLAIN: &[&str] = &[
    "fsspec",
    "hypothesis",
    "ml_dtypes",
    "numpy",
    "pytest",
    "scipy",
];

/// Packages that want versions of others for themselves, and are not to be had everywhere: each is tested in an environment of
/// its own, by the tests that have its name, and by those of safetensors.
const ALONE: &[(&str, &str, &str)] = &[
    (
        "tensorflow",
        "tensorflow-cpu",
        "tests/test_tf_comparison.py",
    ),
    ("mlx", "mlx[cpu]", "tests/test_mlx_comparison.py"),
];

/// The tests of the package, from the root of the repository.
const TESTS: &str = "crates/tenfold-python/tests";

/// Where the sources of the package's Python are.
const SOURCES: &str = "crates/tenfold-python/python";

/// The oldest Python that the package is for.
const OLDEST: (u32, u32) = (3, 11);

/// Runs all tests, or the quick part.
pub(crate) fn run(args: &[String]) -> Result<bool> {
    let is_quick = match args {
        [] => false,
        [only] if only == "--quick" => true,
        [only] if only == "notebook" => return notebook(),
        [only] if only == "interrupt" => return interrupt(),
        _ => return Err("this task takes --quick, notebook or interrupt, and nothing else".into()),
    };
    let project = Project::find()?;
    let Some(python) = find_python()? else {
        return Err(missing().into());
    };
    let packages = if is_quick {
        Packages::quick(&project, &python)?
    } else {
        Packages::full(&project, &python)?
    };
    packages.test(is_quick)?;
    if !is_quick {
        packages.mutate()?;
        let wheel = packages.wheel()?;
        others(&project, &python, &wheel)?;
        let tests = format!("{TESTS}/test_frameworks.py");
        alone(&project, &python, &wheel, |name, _, packages| {
            project::show(&mut packages.python(&["-m", "pytest", "-q", &tests, "-k", name]))
        })?;
    }
    Ok(true)
}

/// The tests in other interpreters than the one that is used here: one wheel is for all of them.
fn others(project: &Project, python: &str, wheel: &Path) -> Result<()> {
    let used = version_of(python)?;
    for version in ["3.11", "3.12", "3.13", "3.14", "3.15"] {
        if version == used {
            continue;
        }
        let Some(python) = find_version(version) else {
            println!("Python {version} is not here: nothing was tested in it");
            continue;
        };
        let name = format!("cpython-{version}");
        let packages = Packages::install(project, &python, &name, PLAIN)?;
        packages.take(wheel)?;
        project::show(&mut packages.python(&["-m", "pytest", "-q", TESTS]))?;
    }
    Ok(())
}

/// Does something with each package that is installed alone: by its name, with the tests of safetensors for it.
fn alone(
    project: &Project,
    python: &str,
    wheel: &Path,
    test: impl Fn(&str, &str, &Packages<'_>) -> Result<Option<String>>,
) -> Result<()> {
    for (name, package, theirs) in ALONE {
        let wanted = ["h5py", "ml_dtypes", "numpy", "pytest", "scipy", package];
        match Packages::install(project, python, name, &wanted) {
            Err(why) => {
                println!("NOTHING WAS TESTED with {package}, which cannot be installed: {why}");
            }
            Ok(packages) => {
                packages.take(wheel)?;
                test(name, theirs, &packages)?;
            }
        }
    }
    Ok(())
}

/// The quick part as a step of CI: passed over, loudly, where there is no Python that is new enough.
pub(crate) fn check(project: &Project) -> Result<Option<String>> {
    let Some(python) = find_python()? else {
        let why = missing();
        eprintln!("\nWARNING: THE PYTHON PACKAGE IS NOT TESTED: {why}\n");
        return Ok(Some(format!("NOTHING WAS TESTED: {why}")));
    };
    Packages::quick(project, &python)?.test(true)?;
    Ok(None)
}

/// Makes a page of what notebooks show, and pictures of it where there is a browser.
fn notebook() -> Result<bool> {
    let project = Project::find()?;
    let python = find_python()?.ok_or_else(missing)?;
    let packages = Packages::quick(&project, &python)?;
    let mut page = packages.python(&[]);
    page.arg(project.root.join("xtask/python/notebook.py"));
    project::show(page.arg(project.target.join("python/notebook")))?;
    Ok(true)
}

/// Stops work of every kind by Ctrl-C, at several moments, and says how long it goes on and what it leaves.
fn interrupt() -> Result<bool> {
    let project = Project::find()?;
    let python = find_python()?.ok_or_else(missing)?;
    let packages = Packages::install(&project, &python, "quick", QUICK)?;
    packages.build("release-test")?;
    let mut interrupt = packages.python(&[]);
    interrupt.arg(project.root.join("xtask/python/interrupt.py"));
    project::show(interrupt.arg(project.target.join("python/interrupt")))?;
    Ok(true)
}

/// Builds the wheel that people install, and the sdist.
pub(crate) fn wheel(args: &[String]) -> Result<bool> {
    if !args.is_empty() {
        return Err("this task takes no arguments".into());
    }
    let project = Project::find()?;
    let python = find_python()?.ok_or_else(missing)?;
    let packages = Packages::install(&project, &python, "wheel", &["maturin>=1.14,<2", "ziglang"])?;
    let wheels = project.target.join("wheels");
    if wheels.exists() {
        fs::remove_dir_all(&wheels)?;
    }
    let mut build = packages.maturin(&["build", "--release", "--zig"]);
    build.args([
        "--target",
        "x86_64-unknown-linux-gnu",
        "--compatibility",
        "manylinux_2_17",
    ]);
    build.arg("--out").arg(&wheels);
    let is_x86_linux = cfg!(all(target_os = "linux", target_arch = "x86_64"));
    if !is_x86_linux || project::show(&mut build).is_err() {
        println!("not built for every Linux: the wheel has the tag of this machine");
        let mut build = packages.maturin(&["build", "--release", "--out"]);
        project::show(build.arg(&wheels))?;
    }
    project::show(packages.maturin(&["sdist", "--out"]).arg(&wheels))?;
    for kind in ["whl", "tar.gz"] {
        try_install(&project, &python, &wheels, kind)?;
    }
    for file in fs::read_dir(&wheels)? {
        let file = file?;
        println!(
            "{} ({} bytes)",
            file.path().display(),
            file.metadata()?.len()
        );
    }
    Ok(true)
}

/// Installs a wheel or an sdist into an empty environment and uses it there: the package, and the command both ways.
fn try_install(project: &Project, python: &str, wheels: &Path, kind: &str) -> Result<()> {
    let files = fs::read_dir(wheels)?.collect::<std::io::Result<Vec<_>>>()?;
    let is_wanted = |path: &PathBuf| path.to_string_lossy().ends_with(kind);
    let mut built = files.into_iter().map(|file| file.path()).filter(is_wanted);
    let built = built.next().ok_or("nothing was built")?;
    let at = project.target.join("python/fresh");
    let fresh = Packages { project, at };
    let mut venv = Command::new(python);
    project::output(venv.args(["-m", "venv", "--clear"]).arg(&fresh.at))?;
    let mut pip = fresh.python(&["-m", "pip", "install", "--quiet"]);
    pip.arg("--disable-pip-version-check").arg(&built);
    project::show(&mut pip)?;
    let code = "import sys, tenfold; \
        assert tenfold.is_tensor_file(b'GGUF') == 'gguf' and 'numpy' not in sys.modules";
    project::show(&mut fresh.python(&["-c", code]))?;
    let version = |command: &mut Command| project::output(command);
    let by_module = version(&mut fresh.python(&["-m", "tenfold", "--version"]))?;
    let by_name = version(Command::new(fresh.at.join("bin/tenfold")).arg("--version"))?;
    if by_module != by_name || !by_name.starts_with(b"tenfold ") {
        return Err("the command is not what the module runs".into());
    }
    fs::remove_dir_all(&fresh.at)?;
    Ok(())
}

/// Runs the tests of the released safetensors against our drop-in.
pub(crate) fn interop() -> Result<bool> {
    let project = Project::find()?;
    let python = find_python()?.ok_or_else(missing)?;
    let packages = Packages::full(&project, &python)?;
    let folder = packages.at.join("safetensors-tests");
    let sources = packages.sources_of("safetensors", &folder)?;
    let tests = sources.join("bindings/python");
    fs::create_dir_all(tests.join("tests/data"))?;
    let mut pytest = packages.python(&["-m", "pytest", "-q", "-p", "safetensors_tests", "tests"]);
    // They need packages that are not installed here.
    pytest.arg("--ignore=tests/test_paddle_comparison.py");
    for (_, _, theirs) in ALONE {
        pytest.arg(format!("--ignore={theirs}"));
    }
    let plugin = project.root.join("xtask/python");
    project::show(pytest.current_dir(&tests).env("PYTHONPATH", &plugin))?;
    alone(
        &project,
        &python,
        &packages.wheel()?,
        |_, theirs, packages| {
            let mut pytest =
                packages.python(&["-m", "pytest", "-q", "-p", "safetensors_tests", theirs]);
            project::show(pytest.current_dir(&tests).env("PYTHONPATH", &plugin))
        },
    )?;
    Ok(true)
}

/// Measures beside safetensors, NumPy, h5py, gguf and PyTorch.
pub(crate) fn bench(quick: bool) -> Result<bool> {
    let project = Project::find()?;
    let python = find_python()?.ok_or_else(missing)?;
    let packages = Packages::install(&project, &python, "full", &[QUICK, FULL].concat())?;
    packages.build("release")?;
    let mut measure = packages.python(&[]);
    measure.arg(project.root.join("xtask/python/bench.py"));
    if quick {
        measure.arg("--quick");
    }
    measure.arg(project.target.join("bench"));
    project::show(&mut measure)?;
    Ok(true)
}

fn missing() -> String {
    let (major, minor) = OLDEST;
    format!("there is no python3 of version {major}.{minor} or newer here")
}

/// A Python that is new enough.
pub(crate) fn find_python() -> Result<Option<String>> {
    let named = [
        "python3",
        "python3.14",
        "python3.13",
        "python3.12",
        "python3.11",
    ];
    let code = format!("import sys, venv; sys.exit(sys.version_info < {OLDEST:?})");
    let works = |name: &&&str| project::output(Command::new(name).args(["-c", &code])).is_ok();
    Ok(named.iter().find(works).map(|name| (*name).to_owned()))
}

/// The version of a Python, as `3.11`.
fn version_of(python: &str) -> Result<String> {
    let code = "import sys; print('%d.%d' % sys.version_info[:2])";
    let said = project::output(Command::new(python).args(["-c", code]))?;
    Ok(String::from_utf8(said)?.trim().to_owned())
}

/// A Python of a version: on the path, or one of pyenv.
fn find_version(version: &str) -> Option<String> {
    let mut candidates = vec![format!("python{version}")];
    let pyenv = std::env::var_os("PYENV_ROOT").map(|root| Path::new(&root).join("versions"));
    let installed = pyenv.and_then(|folder| fs::read_dir(folder).ok());
    for entry in installed.into_iter().flatten().flatten() {
        if entry
            .file_name()
            .to_string_lossy()
            .starts_with(&format!("{version}."))
        {
            let python = entry.path().join("bin/python3");
            candidates.push(python.to_string_lossy().into_owned());
        }
    }
    let works = |python: &String| version_of(python).is_ok_and(|found| found == version);
    candidates.into_iter().find(works)
}

/// A virtual environment with packages.
pub(crate) struct Packages<'p> {
    project: &'p Project,
    at: PathBuf,
}

impl<'p> Packages<'p> {
    fn quick(project: &'p Project, python: &str) -> Result<Self> {
        let packages = Self::install(project, python, "quick", QUICK)?;
        packages.build("dev")?;
        Ok(packages)
    }

    fn full(project: &'p Project, python: &str) -> Result<Self> {
        let packages = Self::install(project, python, "full", &[QUICK, FULL].concat())?;
        packages.build("dev")?;
        Ok(packages)
    }

    /// Made once and used again.
    pub(crate) fn install(
        project: &'p Project,
        python: &str,
        name: &str,
        wanted: &[&str],
    ) -> Result<Self> {
        let at = project.target.join("python").join(name);
        let packages = Self { project, at };
        // Written last, so that an interrupted installation is done again.
        let note = packages.at.join("installed.txt");
        let list = wanted.join("\n");
        if fs::read_to_string(&note).is_ok_and(|installed| installed == list) {
            return Ok(packages);
        }
        println!("installing {}", wanted.join(" "));
        let mut venv = Command::new(python);
        project::output(venv.args(["-m", "venv", "--clear"]).arg(&packages.at))?;
        let mut pip = packages.python(&["-m", "pip", "install", "--quiet"]);
        project::output(pip.arg("--disable-pip-version-check").args(wanted))?;
        fs::write(&note, list)?;
        Ok(packages)
    }

    pub(crate) fn python(&self, args: &[&str]) -> Command {
        let mut python = Command::new(self.at.join("bin/python"));
        let path = std::env::var("PATH").unwrap_or_default();
        python
            .current_dir(&self.project.root)
            .args(args)
            .env("PATH", format!("{}:{path}", self.at.join("bin").display()))
            .env("PYTHONDONTWRITEBYTECODE", "1");
        python
    }

    fn maturin(&self, args: &[&str]) -> Command {
        self.python(&[&["-m", "maturin"], args].concat())
    }

    /// Builds the package, as a wheel, and installs it.
    pub(crate) fn build(&self, profile: &str) -> Result<()> {
        let wheels = self.at.join("wheels");
        if wheels.exists() {
            fs::remove_dir_all(&wheels)?;
        }
        let mut build = self.maturin(&["build", "--quiet", "--profile", profile, "--out"]);
        project::show(build.arg(&wheels))?;
        self.take(&self.wheel()?)
    }

    /// The wheel that was built.
    fn wheel(&self) -> Result<PathBuf> {
        let mut wheels = fs::read_dir(self.at.join("wheels"))?;
        Ok(wheels.next().ok_or("no wheel was built")??.path())
    }

    /// Installs a wheel.
    fn take(&self, wheel: &Path) -> Result<()> {
        let mut pip = self.python(&["-m", "pip", "install", "--quiet", "--force-reinstall"]);
        pip.args(["--no-deps", "--disable-pip-version-check"]);
        project::show(pip.arg(wheel))?;
        Ok(())
    }

    /// The tests, the examples, the stubs, the types, the style.
    fn test(&self, is_quick: bool) -> Result<()> {
        project::show(&mut self.python(&["-m", "ruff", "check", SOURCES, TESTS]))?;
        project::show(&mut self.python(&["-m", "ruff", "format", "--check", SOURCES, TESTS]))?;
        project::show(&mut self.python(&["-m", "mypy"]))?;
        let stubs = format!("{TESTS}/typing/stubtest.txt");
        let mut stubtest = self.python(&["-m", "mypy.stubtest", "tenfold", "--concise"]);
        stubtest.args([
            "--mypy-config-file",
            "pyproject.toml",
            "--ignore-unused-allowlist",
        ]);
        project::show(stubtest.args(["--allowlist", &stubs]))?;
        project::show(&mut self.python(&["-m", "pyright"]))?;
        project::show(&mut self.python(&["-m", "pytest", "-q", TESTS]))?;
        let mut examples = self.python(&["-m", "pytest", "-q", "--doctest-modules", "--pyargs"]);
        examples.args([
            "tenfold",
            "--doctest-ignore-import-errors",
            "-p",
            "no:cacheprovider",
        ]);
        if is_quick {
            // They make a module of PyTorch.
            examples.args(["-k", "not load_model and not save_model"]);
        }
        project::show(&mut examples)?;
        let mut pages = self.python(&["-m", "pytest", "-q", "--doctest-glob=*.md", "docs/python"]);
        project::show(pages.args(["README.md", "-p", "no:cacheprovider"]))?;
        Ok(())
    }

    /// Many more changed files than in the quick part.
    fn mutate(&self) -> Result<()> {
        let hostile = format!("{TESTS}/test_hostile.py");
        let mut pytest = self.python(&["-m", "pytest", "-q", &hostile]);
        project::show(pytest.env("TENFOLD_MUTATED", "10000"))?;
        Ok(())
    }

    /// The sources of a package's release that is installed here.
    fn sources_of(&self, package: &str, folder: &Path) -> Result<PathBuf> {
        let code = format!("import importlib.metadata as m; print(m.version('{package}'))");
        let version = project::output(&mut self.python(&["-c", &code]))?;
        let version = String::from_utf8(version)?.trim().to_owned();
        let sources = folder.join(format!("{package}-{version}"));
        if sources.exists() {
            return Ok(sources);
        }
        fs::create_dir_all(folder)?;
        let mut pip = self.python(&["-m", "pip", "download", "--quiet", "--no-deps"]);
        pip.args(["--no-binary", ":all:", "--no-build-isolation", "--dest"]);
        pip.arg(folder).arg(format!("{package}=={version}"));
        project::output(&mut pip)?;
        let archive = folder.join(format!("{package}-{version}.tar.gz"));
        let unpack =
            "import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2], filter='data')";
        project::output(self.python(&["-c", unpack]).arg(archive).arg(folder))?;
        Ok(sources)
    }
}
