//! Slurm of this system's packages: its daemons under one folder, with a key, a socket and ports of their own.

use super::{KILLED, Work, until};
use crate::Result;
use crate::project;
use crate::remote::servers::free_port;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A daemon that runs until it is dropped.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        // Those of an interpreter's threads go with it; it may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn found(program: &str) -> Option<PathBuf> {
    ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin"]
        .iter()
        .map(|folder| Path::new(folder).join(program))
        .find(|path| path.is_file())
}

pub(super) fn run(work: &Work<'_>) -> Result<bool> {
    let programs = ["munged", "slurmctld", "slurmd", "sbatch", "squeue"].map(found);
    let [
        Some(munged),
        Some(slurmctld),
        Some(slurmd),
        Some(_),
        Some(squeue),
    ] = programs
    else {
        return Ok(false);
    };
    // Its socket has a path of at most 108 bytes.
    let folder = std::env::temp_dir().join(format!("tenfold-slurm-{}", std::process::id()));
    fs::create_dir_all(folder.join("state"))?;
    let result = with_cluster(work, &folder, [munged, slurmctld, slurmd, squeue]);
    let _ = fs::remove_dir_all(&folder);
    result.map(|()| true)
}

fn with_cluster(work: &Work<'_>, folder: &Path, programs: [PathBuf; 4]) -> Result<()> {
    let [munged, slurmctld, slurmd, squeue] = programs;
    let at = |name: &str| folder.join(name);
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
    let mut key = Vec::new();
    for _ in 0..64 {
        key.extend_from_slice(&std::time::Instant::now().elapsed().as_nanos().to_le_bytes());
    }
    fs::write(at("key"), key)?;
    fs::set_permissions(at("key"), fs::Permissions::from_mode(0o600))?;
    let socket = at("socket");
    let start = |command: &mut Command, log: &str| -> Result<Daemon> {
        let log = fs::File::create(at(log))?;
        let command = command.stdin(Stdio::null()).stdout(log.try_clone()?);
        Ok(Daemon(command.stderr(log).spawn()?))
    };
    let _munged = start(
        Command::new(munged)
            .args(["--foreground", "--force", "--num-threads=1"])
            .arg(format!("--key-file={}", at("key").display()))
            .arg(format!("--socket={}", socket.display()))
            .arg(format!("--pid-file={}", at("munged.pid").display()))
            .arg(format!("--log-file={}", at("munged.own.log").display()))
            .arg(format!("--seed-file={}", at("munged.seed").display())),
        "munged.log",
    )?;
    until("munge's socket", || Ok(socket.exists()))?;
    let host = project::output(&mut Command::new("hostname"))?;
    let host = String::from_utf8(host)?.trim().to_owned();
    let shown = folder.display();
    let (controller, node) = (free_port()?, free_port()?);
    let conf = format!(
        "ClusterName=tenfold\nSlurmctldHost={host}(127.0.0.1)\nSlurmUser=root\nSlurmdUser=root\n\
         AuthType=auth/munge\nAuthInfo=socket={socket}\nSlurmctldPort={controller}\nSlurmdPort={node}\n\
         StateSaveLocation={shown}/state\nSlurmdSpoolDir={shown}/spool\nSlurmctldPidFile={shown}/ctld.pid\n\
         SlurmdPidFile={shown}/d.pid\nProctrackType=proctrack/pgid\nTaskPlugin=task/none\nReturnToService=2\n\
         MpiDefault=none\nJobAcctGatherType=jobacct_gather/none\nSelectType=select/cons_tres\n\
         NodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN\n\
         PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n",
        socket = socket.display(),
    );
    let conf_file = at("slurm.conf");
    fs::write(&conf_file, conf)?;
    let with_conf = |program: &Path| {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", &conf_file);
        command
    };
    let _controller = start(
        with_conf(&slurmctld).arg("-D").arg("-f").arg(&conf_file),
        "slurmctld.log",
    )?;
    let _node = start(
        with_conf(&slurmd)
            .args(["-D", "-N", &host])
            .arg("-f")
            .arg(&conf_file),
        "slurmd.log",
    )?;
    until("an idle node", || {
        let nodes = project::output(with_conf(Path::new("sinfo")).args(["-h", "-o", "%t"]));
        Ok(nodes.is_ok_and(|nodes| nodes.starts_with(b"idle")))
    })
    .map_err(|error| format!("{error}; its logs are gone with {shown}"))?;
    // Tasks find this command; the first that does the item is killed.
    let bin = at("bin");
    fs::create_dir_all(&bin)?;
    let killed = work.folder.join("killed");
    let wrapper = format!(
        "#!/bin/sh\nif [ \"$SLURM_ARRAY_TASK_ID\" = {KILLED} ] && [ ! -e '{killed}' ]; then\n  : > '{killed}'\n  kill -9 $$\nfi\nexec '{tenfold}' \"$@\"\n",
        killed = killed.display(),
        tenfold = work.tenfold.display(),
    );
    fs::write(bin.join("tenfold"), wrapper)?;
    fs::set_permissions(bin.join("tenfold"), fs::Permissions::from_mode(0o755))?;
    let path = format!(
        "{}:{}",
        bin.display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let examples = work.project.root.join("examples/slurm");
    let is_idle = || {
        let jobs = project::output(with_conf(&squeue).arg("-h"))?;
        Ok(jobs.is_empty())
    };
    let submit = |command: &mut Command| {
        let command = command.env("PATH", &path).env("SLURM_CONF", &conf_file);
        project::output(command.current_dir(&work.folder))
    };
    submit(
        Command::new("sbatch")
            .arg("--array=0-7")
            .arg(examples.join("convert.sh"))
            .arg("plan.json"),
    )?;
    until("the end of the array", is_idle)?;
    let missing = work
        .command()
        .args(["join", "plan.json", "--status", "-q"])
        .output()?;
    if missing.stdout != format!("{KILLED}\n").as_bytes() {
        let missing = String::from_utf8_lossy(&missing.stdout).into_owned();
        return Err(format!("{missing:?} is missing behind the array, not {KILLED}").into());
    }
    submit(
        Command::new("sh")
            .arg(examples.join("resubmit.sh"))
            .arg("plan.json"),
    )?;
    until("the end of what was missing", is_idle)?;
    work.compare()
}
