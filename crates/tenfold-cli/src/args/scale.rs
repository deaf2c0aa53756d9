//! Work for many machines: plan, run, join.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::parse::{bytes, items};
use super::{ConvertArgs, DiffArgs, DigestArgs, StatsArgs, Threads, VerifyArgs};

pub(super) const PLAN_EXAMPLES: &str = "\
Examples:
  tenfold plan convert llama/ llama.gguf --items 16           writes llama.gguf.plan.json
  tenfold plan convert s3://bucket/llama/ llama.gguf --item-size 4GiB -o llama.json
  tenfold plan convert models/ out/ --to gguf --items 64      every model below models/
  tenfold plan digest model.safetensors --items 16 -o plan.json
  tenfold plan verify s3://bucket/models/ --items 100 -o plan.json
  tenfold run plan.json --item 3                              on any machine, any number of times
  tenfold join plan.json                                      what one process would have written or printed
";

pub(super) const RUN_EXAMPLES: &str = "\
Examples:
  tenfold run plan.json --item 3,7-9     some items
  tenfold run plan.json --all            everything that is not done, on this machine
  sbatch --array=0-15 --wrap 'tenfold run plan.json'
";

pub(super) const RUN_NOTES: &str = "\
Without --item and --all, the environment says which item it is: TENFOLD_ITEM, SLURM_ARRAY_TASK_ID, JOB_COMPLETION_INDEX, \
AWS_BATCH_JOB_ARRAY_INDEX, PBS_ARRAY_INDEX or LSB_JOBINDEX, from 0; or a rank of several does every item whose number leaves it \
over: OMPI_COMM_WORLD_RANK and _SIZE, PMI_RANK and _SIZE, SLURM_PROCID and SLURM_NTASKS, RANK and WORLD_SIZE.

Exit codes: 0 done, now or before; 1 something was found that is not sound; 2 an error. All of it can be done again.";

pub(super) const JOIN_EXAMPLES: &str = "\
Examples:
  tenfold join plan.json                               checks, finishes and makes visible
  sbatch --array=$(tenfold join plan.json --status)    what is not done yet
  tenfold join plan.json --check                       reads back what was written
  tenfold join plan.json --abandon                     gives it up
";

pub(super) const JOIN_NOTES: &str = "\
Exit codes: 0 joined, or with --status all done; 1 items are not done, or what was found is not sound; 2 an error.";

#[derive(Args, Debug)]
pub(crate) struct PlanArgs {
    #[command(subcommand)]
    pub(crate) verb: PlanVerb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PlanVerb {
    /// Write in another format: bytes of one file, shards, or every model of a tree
    #[command(override_usage = "tenfold plan convert [OPTIONS] <IN>... <OUT>")]
    Convert(Box<PlanConvert>),
    /// Hash the content
    Digest(Box<PlanDigest>),
    /// Check that files are sound
    #[command(visible_alias = "check")]
    Verify(Box<PlanVerify>),
    /// Summarize the numbers
    Stats(Box<PlanStats>),
    /// Compare two files or models
    Diff(Box<PlanDiff>),
}

/// What `-o` is here.
fn plan_file(arg: clap::Arg) -> clap::Arg {
    arg.value_name("PLAN")
        .help("Where the plan goes; - prints it [default: OUT.plan.json]")
}

impl PlanVerb {
    /// The first file that is read.
    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            PlanVerb::Convert(args) => super::first(&args.convert.files),
            PlanVerb::Digest(args) => super::first(&args.digest.inputs.files),
            PlanVerb::Verify(args) => super::first(&args.verify.inputs.files),
            PlanVerb::Stats(args) => super::first(&args.stats.inputs.files),
            PlanVerb::Diff(args) => Some(&args.diff.a),
        }
    }
}

/// How work is cut.
#[derive(Args, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct Cut {
    /// How many items to cut it into; fewer where there is less to do
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Items")]
    pub(crate) items: Option<u32>,
    /// About how many bytes to give an item, such as 4GiB
    #[arg(long, value_name = "SIZE", value_parser = bytes, help_heading = "Items")]
    pub(crate) item_size: Option<u64>,
}

#[derive(Args, Debug)]
pub(crate) struct Kept {
    /// Where receipts are kept: the beginning of a name in a file system that all machines see [default: that of the output, or of the plan]
    #[arg(long, value_name = "DIR", help_heading = "Items")]
    pub(crate) state: Option<String>,
}

/// Where a plan goes that has no output of its own.
#[derive(Args, Debug)]
pub(crate) struct PlanFile {
    /// Where the plan goes; - prints it
    #[arg(long, short, value_name = "PLAN", default_value = "plan.json")]
    pub(crate) output: PathBuf,
}

#[derive(Args, Debug)]
#[command(mut_arg("output", plan_file))]
pub(crate) struct PlanConvert {
    #[command(flatten)]
    pub(crate) convert: ConvertArgs,
    #[command(flatten)]
    pub(crate) cut: Cut,
    #[command(flatten)]
    pub(crate) kept: Kept,
}

#[derive(Args, Debug)]
pub(crate) struct PlanDigest {
    #[command(flatten)]
    pub(crate) digest: DigestArgs,
    #[command(flatten)]
    pub(crate) cut: Cut,
    #[command(flatten)]
    pub(crate) kept: Kept,
    #[command(flatten)]
    pub(crate) plan: PlanFile,
}

#[derive(Args, Debug)]
pub(crate) struct PlanVerify {
    #[command(flatten)]
    pub(crate) verify: VerifyArgs,
    #[command(flatten)]
    pub(crate) cut: Cut,
    #[command(flatten)]
    pub(crate) kept: Kept,
    #[command(flatten)]
    pub(crate) plan: PlanFile,
}

#[derive(Args, Debug)]
pub(crate) struct PlanStats {
    #[command(flatten)]
    pub(crate) stats: StatsArgs,
    #[command(flatten)]
    pub(crate) cut: Cut,
    #[command(flatten)]
    pub(crate) kept: Kept,
    #[command(flatten)]
    pub(crate) plan: PlanFile,
}

#[derive(Args, Debug)]
pub(crate) struct PlanDiff {
    #[command(flatten)]
    pub(crate) diff: DiffArgs,
    #[command(flatten)]
    pub(crate) cut: Cut,
    #[command(flatten)]
    pub(crate) kept: Kept,
    #[command(flatten)]
    pub(crate) plan: PlanFile,
}

#[derive(Args, Debug)]
pub(crate) struct RunArgs {
    /// The plan
    #[arg(value_name = "PLAN")]
    pub(crate) plan: PathBuf,
    /// Which items: 3, or 3,7-9
    #[arg(long, value_name = "LIST", value_parser = items, conflicts_with = "all")]
    pub(crate) item: Option<ItemList>,
    /// Everything that is not done
    #[arg(long)]
    pub(crate) all: bool,
    /// Also what is done already
    #[arg(long, requires = "item")]
    pub(crate) again: bool,
    #[command(flatten)]
    pub(crate) threads: Threads,
    /// Print only errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Numbers of items.
pub(crate) type ItemList = std::sync::Arc<[usize]>;

#[derive(Args, Debug)]
pub(crate) struct JoinArgs {
    /// The plan
    #[arg(value_name = "PLAN")]
    pub(crate) plan: PathBuf,
    /// Print the items that are not done, and nothing else
    #[arg(long, conflicts_with_all = ["check", "force", "abandon", "tidy"])]
    pub(crate) status: bool,
    /// Read the output back and compare it with what each item recorded
    #[arg(long)]
    pub(crate) check: bool,
    /// Replace an existing output
    #[arg(long)]
    pub(crate) force: bool,
    /// Give the plan up: remove what its items left
    #[arg(long, conflicts_with_all = ["check", "force", "tidy"])]
    pub(crate) abandon: bool,
    /// Remove the plan's state too: items that run again no longer know that they were done
    #[arg(long)]
    pub(crate) tidy: bool,
    #[command(flatten)]
    pub(crate) threads: Threads,
    /// Print only errors, and what one process would print
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
