//! What it costs to cut work into items: on one machine, beside doing it at once.

use super::race::Runner;
use super::{Bench, Goal};
use crate::Result;
use crate::project;
use std::fs;
use std::process::Command;

/// Runs every item and joins, from a plan to the end.
const ITEMS: &str = r#"
rm -rf plan.json ours.gguf ours.gguf.tenfold-*
"$0" plan convert "$1" ours.gguf --items 16 -o plan.json -q && "$0" run plan.json --all -q && "$0" join plan.json -q
rm -rf plan.json ours.gguf ours.gguf.tenfold-*
"#;
const ONE: &str = r#"rm -f theirs.gguf; "$0" convert "$1" theirs.gguf -q; rm -f theirs.gguf"#;

/// Shards whose headers are read.
const SHARDS: u32 = 1000;

impl Bench {
    /// Sixteen items beside one conversion; planning a model of many shards beside looking into it; how large a plan is.
    pub(super) fn scale(&self) -> Result<()> {
        let (mib, big) = self.big()?;
        let from = self.input(&format!("big-{mib}-scale.safetensors"), |file| {
            let options = ["convert", "--to", "safetensors", "--no-sync"];
            project::output(
                Command::new(&self.tenfold)
                    .args(options)
                    .arg(&big)
                    .arg(file),
            )
        })?;
        let shell = |name: &str, script: &str| {
            let script = format!("cd '{}'; {script}", self.folder.display());
            Runner::new(name, "sh")
                .args(["-c".to_owned(), script])
                .args([&self.tenfold, &from])
        };
        let ours = [(
            format!("16 items, {mib} MiB of safetensors to GGUF"),
            shell("tenfold", ITEMS),
        )];
        let goal = |ratio| Some(Goal { ratio, peak: None });
        self.row(&ours, &shell("tenfold convert", ONE), goal(1.1))?;
        let shards = self.shards()?;
        let index = shards.join("model.safetensors.index.json");
        let plan = "cd \"$(mktemp -d)\"; \"$0\" plan digest \"$1\" --items 100 -o plan.json";
        let ours = Runner::new("tenfold", "sh")
            .args(["-c", plan])
            .args([&self.tenfold, &index]);
        let theirs = Runner::new("tenfold inspect", &self.tenfold)
            .args(["inspect", "--summary"])
            .args([&index]);
        self.row(
            &[(format!("plan of {SHARDS} shards"), ours)],
            &theirs,
            goal(2.0),
        )
    }

    /// A model of many shards with an index.
    fn shards(&self) -> Result<std::path::PathBuf> {
        let folder = self.folder.join(format!("shards-{SHARDS}"));
        if folder.join("model.safetensors.index.json").is_file() {
            return Ok(folder);
        }
        fs::create_dir_all(&folder)?;
        let mut map = serde_json::Map::new();
        for n in 1..=SHARDS {
            let name = format!("model-{n:05}-of-{SHARDS:05}.safetensors");
            let header = format!(
                r#"{{"layer.{n}.weight":{{"dtype":"F32","shape":[1000],"data_offsets":[0,4000]}}}}"#
            );
            let mut file = (header.len() as u64).to_le_bytes().to_vec();
            file.extend_from_slice(header.as_bytes());
            file.resize(file.len() + 4000, 1);
            fs::write(folder.join(&name), file)?;
            map.insert(format!("layer.{n}.weight"), name.into());
        }
        let index = serde_json::json!({"metadata": {"total_size": 4000 * u64::from(SHARDS)}, "weight_map": map});
        fs::write(
            folder.join("model.safetensors.index.json"),
            index.to_string(),
        )?;
        Ok(folder)
    }
}
