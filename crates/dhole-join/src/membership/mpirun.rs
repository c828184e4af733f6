//! What MPI's launchers say of a process in its environment.

use std::ffi::OsString;

use dhole_model::{MAX_NODES, NodeId};

use super::Membership;
use super::error::JoinError;
use dhole_net::variables::{Look, number, wrong};

/// The variables of a launcher that say how many processes it started, and which of them one is.
struct Launcher {
    name: &'static str,
    size: &'static str,
    rank: &'static str,
}

/// Those that are known, the more particular first: under `srun` there may be `PMI`'s as well.
const LAUNCHERS: [Launcher; 5] = [
    Launcher {
        name: "mpirun",
        size: "OMPI_COMM_WORLD_SIZE",
        rank: "OMPI_COMM_WORLD_RANK",
    },
    Launcher {
        name: "mpiexec",
        size: "PMI_SIZE",
        rank: "PMI_RANK",
    },
    Launcher {
        name: "mpiexec",
        size: "MV2_COMM_WORLD_SIZE",
        rank: "MV2_COMM_WORLD_RANK",
    },
    // PMIx says the number of processes to the library alone.
    Launcher {
        name: "srun --mpi=pmix",
        size: "SLURM_STEP_NUM_TASKS",
        rank: "PMIX_RANK",
    },
    // A batch script has tasks, but is no step: only `srun` sets the first.
    Launcher {
        name: "srun",
        size: "SLURM_STEP_NUM_TASKS",
        rank: "SLURM_PROCID",
    },
];

/// What a launcher says of this process; nothing where there is none, or it started one only.
pub(super) fn read(
    look: Look<'_>,
    words: impl Iterator<Item = OsString>,
) -> Result<Option<Membership>, JoinError> {
    for launcher in LAUNCHERS {
        let nodes = number(look, launcher.size, 1, MAX_NODES as u64)?.unwrap_or(1) as usize;
        let Some(rank) = number(look, launcher.rank, 0, MAX_NODES as u64 - 1)? else {
            continue;
        };
        if nodes == 1 {
            continue;
        }
        let node = NodeId::at(rank as usize);
        if node.index() >= nodes {
            let expected = format!("a number below {nodes}");
            return Err(wrong(launcher.rank, &node.0, expected).into());
        }
        return started(look, words, &launcher, node, nodes).map(Some);
    }
    Ok(None)
}

#[cfg(not(feature = "mpi"))]
fn started(
    _: Look<'_>,
    _: impl Iterator<Item = OsString>,
    launcher: &Launcher,
    _: NodeId,
    nodes: usize,
) -> Result<Membership, JoinError> {
    let error = dhole_net::EnvironmentError::WithoutMpi {
        launcher: launcher.name,
        variable: launcher.size,
        nodes,
    };
    Err(error.into())
}

#[cfg(feature = "mpi")]
fn started(
    look: Look<'_>,
    words: impl Iterator<Item = OsString>,
    launcher: &Launcher,
    node: NodeId,
    nodes: usize,
) -> Result<Membership, JoinError> {
    let here = number(look, "OMPI_COMM_WORLD_LOCAL_SIZE", 1, nodes as u64)?;
    let here = here.map_or(nodes, |here| here as usize);
    let way = super::Way::Launched {
        neighbours: sharing(here, cores(), all_cores()),
    };
    let membership = super::member::member(look, words, node, nodes, way)?;
    Ok(membership.setting("launcher", launcher.name))
}

/// Cores that this process may use: a launcher may have bound it to some.
#[cfg(feature = "mpi")]
fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get())
}

/// Cores of the machine: each has a line of its own among its processors.
#[cfg(feature = "mpi")]
fn all_cores() -> usize {
    let told = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let lines = told.lines().filter(|line| line.starts_with("processor"));
    lines.count()
}

/// How many of `here` processes share `cores` of `all`, where each is bound to as many.
#[cfg(any(feature = "mpi", test))]
fn sharing(here: usize, cores: usize, all: usize) -> usize {
    (here * cores).div_ceil(all.max(cores).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(set: &[(&str, &str)]) -> Result<Option<Membership>, JoinError> {
        read(
            &|name| {
                let found = set.iter().find(|(n, _)| *n == name);
                found.map(|(_, value)| OsString::from(value))
            },
            std::iter::empty(),
        )
    }

    #[test]
    fn without_a_launcher_or_alone_a_process_is_no_member() {
        for set in [
            &[][..],
            &[("OMPI_COMM_WORLD_SIZE", "1"), ("OMPI_COMM_WORLD_RANK", "0")],
            &[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "8")],
        ] {
            assert!(with(set).unwrap().is_none(), "{set:?}");
        }
    }

    #[test]
    fn each_launcher_is_known_by_its_variables() {
        for launcher in LAUNCHERS {
            let set = [(launcher.size, "4"), (launcher.rank, "3")];
            let member = with(&set);
            assert_eq!(member.is_ok(), cfg!(feature = "mpi"), "{member:?}");
            match member {
                Ok(member) => {
                    let member = member.unwrap();
                    assert_eq!((member.node(), member.nodes()), (NodeId(3), 4));
                }
                Err(error) => {
                    let said = error.to_string();
                    assert!(said.contains("feature `mpi`") && said.contains("one of 4"));
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_is_told_by_variable() {
        for (size, rank) in [
            ("4", "4"),
            ("x", "0"),
            ("0", "0"),
            ("9999", "0"),
            ("4", "-1"),
        ] {
            let set = [
                ("OMPI_COMM_WORLD_SIZE", size),
                ("OMPI_COMM_WORLD_RANK", rank),
            ];
            let said = with(&set).unwrap_err().to_string();
            assert!(said.contains("OMPI_COMM_WORLD"), "{said}");
        }
    }

    #[test]
    fn processes_that_are_bound_to_cores_of_their_own_share_them_with_nobody() {
        assert_eq!(sharing(2, 1, 2), 1);
        assert_eq!(sharing(4, 2, 2), 4);
        assert_eq!(sharing(64, 1, 64), 1);
        assert_eq!(sharing(3, 8, 8), 3);
    }
}
