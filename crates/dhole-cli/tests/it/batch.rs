//! The batch scripts of `docs/launch`, as far as they can be tried without a batch system.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, net};

use dhole::Config;

use crate::write_script;

fn launch(file: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/launch");
    folder.join(file).canonicalize().unwrap()
}

/// What runs on each node.
#[test]
fn member() {
    if env::var("DHOLE_NODE").is_err() {
        return;
    }
    let run = Config::nodes(1).run(|w| {
        let values = w.once(|w| Ok(w.alloc_range(w.nodes(), |_| 0_u64)))?;
        *values.at(w.node().index()).get_mut(w) = 1;
        w.barrier()?;
        Ok(values.iter().map(|value| value.read(w)).sum::<u64>())
    });
    println!(
        "{} nodes, {:?}",
        run.unwrap().value,
        env::var("DHOLE_SECRET_FILE").is_ok()
    );
}

/// A command that stands for one of Slurm's.
fn stand_in(folder: &Path, name: &str, text: &str) {
    write_script(&folder.join(name), &format!("#!/bin/sh\n{text}\n"));
}

#[test]
fn under_slurm_each_task_is_a_node_and_the_secret_is_gone_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let secrets = folder.path().join("home");
    fs::create_dir(&secrets).unwrap();
    stand_in(folder.path(), "scontrol", "echo localhost; echo other");
    let tasks = "[ $1 = --kill-on-bad-exit=1 ] && shift; \
        for task in 2 0 1; do SLURM_PROCID=$task \"$@\" & done; wait";
    stand_in(folder.path(), "srun", tasks);
    let path = format!("{}:{}", folder.path().display(), env::var("PATH").unwrap());
    // A number for the job whose port is free now.
    let free = net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let job = (i32::from(port) - 20_000).rem_euclid(10_000);
    let output = Command::new(launch("slurm.sh"))
        .arg(env::current_exe().unwrap())
        .args(["--exact", "batch::member", "--nocapture"])
        .env("PATH", path)
        .env("DHOLE_SECRETS", &secrets)
        .env("SLURM_JOB_ID", job.to_string())
        .env("SLURM_NTASKS", "3")
        .env("SLURM_JOB_NODELIST", "localhost,other")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said.matches("3 nodes, true").count(), 3, "{output:?}");
    let left = fs::read_dir(&secrets).unwrap().count();
    assert_eq!(left, 0, "the file with the secret is removed");
}

#[test]
fn the_manifest_says_what_a_node_needs() {
    let manifest = fs::read_to_string(launch("kubernetes.yaml")).unwrap();
    for variable in [
        "DHOLE_NODE",
        "DHOLE_NODES",
        "DHOLE_MEETING",
        "DHOLE_LISTEN",
        "DHOLE_SECRET_FILE",
    ] {
        let named = format!("- name: {variable}\n");
        assert!(manifest.contains(&named), "{variable}");
    }
    // As many pods as nodes, all at once.
    assert!(manifest.contains("completions: 4\n  parallelism: 4\n"));
    assert!(manifest.contains("value: \"4\""));
}
