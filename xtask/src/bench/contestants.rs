//! The real libraries and programs, installed under `target` and driven by the programs in `xtask/bench`.

use super::Bench;
use super::race::Runner;
use crate::Result;
use crate::project;
use std::path::PathBuf;
use std::process::Command;

/// A library under a small program that writes many tensors (`make`) and opens them (`open`).
pub(super) struct Contestant {
    name: &'static str,
    program: PathBuf,
    /// For `program` as an interpreter.
    script: Option<PathBuf>,
}

impl Contestant {
    pub(super) fn command(&self) -> Command {
        match &self.script {
            Some(script) => project::python(&self.program, script),
            None => Command::new(&self.program),
        }
    }

    pub(super) fn runner(&self) -> Runner {
        Runner::new(self.name, &self.program).args(&self.script)
    }
}

impl Bench {
    pub(super) fn ztensor_0(&self) -> Result<Contestant> {
        self.package(
            "ztensor 0.1.4",
            &["ztensor==0.1.4", "numpy", "ml_dtypes"],
            "many_ztensor_0.py",
        )
    }

    pub(super) fn magnetron(&self) -> Result<Contestant> {
        self.package(
            "magnetron 0.2.2",
            &["magnetron==0.2.2"],
            "many_magnetron.py",
        )
    }

    pub(super) fn numpy(&self) -> Result<Contestant> {
        self.package("numpy", &["numpy"], "order_numpy.py")
    }

    pub(super) fn numpy_stats(&self) -> Result<Contestant> {
        self.package("numpy", &["numpy"], "stats_numpy.py")
    }

    pub(super) fn ml_dtypes(&self) -> Result<Contestant> {
        self.package(
            "numpy, ml_dtypes astype",
            &["ml_dtypes", "numpy"],
            "cast_numpy.py",
        )
    }

    pub(super) fn h5py(&self) -> Result<Contestant> {
        let installs = ["h5py==3.16.0", "numpy==2.4.6"];
        self.package("h5py 3.16.0", &installs, "hdf5_h5py.py")
    }

    /// From the environment of the exchange with transformers, which brings safetensors along.
    pub(super) fn torch(&self) -> Result<Contestant> {
        let installs = ["transformers==5.23.0", "torch==2.15.0"];
        self.package("torch 2.15.0", &installs, "pytorch_torch.py")
    }

    pub(super) fn torch_distributed(&self) -> Result<Contestant> {
        let installs = ["torch==2.15.0", "numpy", "zstandard"];
        self.package("torch 2.15.0", &installs, "dcp_torch.py")
    }

    pub(super) fn zarr_python(&self) -> Result<Contestant> {
        let installs = ["zarr==3.1.6", "numcodecs==0.16.6", "numpy==2.4.6"];
        self.package("zarr-python 3.1.6", &installs, "zarr_python.py")
    }

    pub(super) fn scipy(&self) -> Result<Contestant> {
        let installs = ["scipy==1.17.1", "numpy"];
        self.package("scipy 1.17.1", &installs, "mat_scipy.py")
    }

    pub(super) fn tensorflow(&self) -> Result<Contestant> {
        let installs = ["tensorflow-cpu==2.21.0"];
        self.package("tensorflow 2.21.0", &installs, "tf_bundle.py")
    }

    pub(super) fn gguf_package(&self) -> Result<Contestant> {
        self.package(
            "gguf-py 0.19.0",
            &["gguf==0.19.0", "numpy"],
            "gguf_python.py",
        )
    }

    /// The quantizer of llama.cpp, in a wheel that has its library.
    pub(super) fn ggml(&self) -> Result<Contestant> {
        self.package(
            "ggml 0.13.1 (C)",
            &["pywhispercpp==1.5.1", "numpy"],
            "ggml_quantize.py",
        )
    }

    fn package(&self, name: &'static str, installs: &[&str], program: &str) -> Result<Contestant> {
        Ok(Contestant {
            name,
            program: self.project.environment(installs, None)?,
            script: Some(self.project.root.join("xtask/bench").join(program)),
        })
    }

    pub(super) fn ztensor_2(&self) -> Result<Contestant> {
        self.built("ztensor 2.1.1", "ztensor2")
    }

    pub(super) fn burn_pack(&self) -> Result<Contestant> {
        self.built("burn-pack 0.23", "burnpack")
    }

    pub(super) fn safetensors_crate(&self) -> Result<Contestant> {
        self.built("safetensors 0.8.0 (crate)", "safetensors")
    }

    pub(super) fn safetensors_package(&self) -> Result<Contestant> {
        self.package(
            "safetensors 0.8.0 (Python)",
            &["safetensors==0.8.0", "numpy", "ml_dtypes"],
            "many_safetensors.py",
        )
    }

    /// A crate, built apart from our workspace.
    fn built(&self, name: &'static str, folder: &str) -> Result<Contestant> {
        let target = self.folder.join(folder);
        let manifest = self.project.root.join("xtask/bench").join(folder);
        let mut build = project::cargo(&self.project.root);
        build
            .args([
                "build",
                "--quiet",
                "--release",
                "--locked",
                "--manifest-path",
            ])
            .arg(manifest.join("Cargo.toml"));
        project::status(build.arg("--target-dir").arg(&target))?;
        Ok(Contestant {
            name,
            program: target.join("release").join(folder),
            script: None,
        })
    }

    /// The command of the `ztensor-cli` crate.
    pub(super) fn zt(&self) -> Result<PathBuf> {
        let folder = self.folder.join("zt");
        let zt = folder.join("bin/zt");
        if !zt.exists() {
            eprintln!("building zt, which takes some minutes");
            let install = [
                "install",
                "--quiet",
                "--locked",
                "ztensor-cli",
                "--version",
                "2.1.1",
                "--root",
            ];
            project::status(
                project::cargo(&self.project.root)
                    .args(install)
                    .arg(&folder),
            )?;
        }
        Ok(zt)
    }
}
