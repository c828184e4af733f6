//! What the environment says of this process.

use std::ffi::OsString;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use dhole_model::{MAX_NODES, NodeId};

use super::error::JoinError;
use super::member::member;
use super::mpirun;
use super::secret::Secret;
use super::{Encrypts, Listens, Meet, Membership, Way, transport, transports};
use crate::inherited;
use crate::inherited::HandedOver;
use dhole_net::launcher::Launcher;
use dhole_net::variables::{Look, RUN, is_set, lone, number, text, wrong};
use dhole_net::{EnvironmentError, SecretError};

/// What whoever starts a program between `dhole run` and the node has to do.
const PASSED_ON: &str = ", which what starts this program leaves open for it";

pub(super) fn read(
    look: Look<'_>,
    words: impl Iterator<Item = OsString>,
) -> Result<Option<Membership>, JoinError> {
    let Some(node) = number(look, "DHOLE_NODE", 0, MAX_NODES as u64 - 1)? else {
        let missing = "DHOLE_NODE";
        if let Some(set) = lone(look) {
            return Err(EnvironmentError::Incomplete { set, missing }.into());
        }
        let launched = mpirun::read(look, words)?;
        if launched.is_none() && is_set(look, RUN) {
            return Err(EnvironmentError::Incomplete { set: RUN, missing }.into());
        }
        return Ok(launched);
    };
    let demand = |missing| EnvironmentError::Incomplete {
        set: "DHOLE_NODE",
        missing,
    };
    let nodes = number(look, "DHOLE_NODES", 1, MAX_NODES as u64)?;
    let nodes = nodes.ok_or_else(|| demand("DHOLE_NODES"))? as usize;
    let node = NodeId::at(node as usize);
    if node.index() >= nodes {
        return Err(wrong("DHOLE_NODE", &node.0, format!("a number below {nodes}")).into());
    }
    let transport = match text(look, "DHOLE_TRANSPORT")? {
        None => transport::ALL[0],
        Some(name) => {
            let expected = || transports().collect::<Vec<_>>().join(" or ");
            transport::named(&name).ok_or_else(|| wrong("DHOLE_TRANSPORT", &name, expected()))?
        }
    };
    let encrypts = match text(look, "DHOLE_TLS")?.as_deref() {
        None | Some("auto") => Encrypts::BetweenMachines,
        #[cfg(not(feature = "tls"))]
        Some("always") => {
            let missing = dhole_model::MissingFeature {
                feature: "tls",
                asked: "all connections are to be encrypted (DHOLE_TLS=always)",
            };
            return Err(EnvironmentError::Feature(missing).into());
        }
        #[cfg(feature = "tls")]
        Some("always") => Encrypts::Always,
        Some("never") => Encrypts::Never,
        Some(other) => {
            return Err(wrong("DHOLE_TLS", &other, "auto, always or never".to_owned()).into());
        }
    };
    let handed_over = handed_over(look)?;
    let listens = match number(look, "DHOLE_MEETING_FD", 0, i32::MAX as u64)? {
        Some(fd) if node.0 == 0 => Listens::Already(listener(fd as i32, &handed_over)?),
        _ => Listens::At(text(look, "DHOLE_LISTEN")?),
    };
    let meeting = text(look, "DHOLE_MEETING")?;
    if meeting.is_none() && nodes > 1 && !matches!(listens, Listens::Already(_)) {
        return Err(demand("DHOLE_MEETING").into());
    }
    let host = text(look, "DHOLE_HOST")?;
    const LONGEST_HOST_BYTES: usize = 255;
    if let Some(host) = host.as_deref().filter(|h| h.len() > LONGEST_HOST_BYTES) {
        let expected = format!("a name of at most {LONGEST_HOST_BYTES} bytes");
        return Err(wrong("DHOLE_HOST", &host, expected).into());
    }
    let meet = Meet {
        meeting: meeting.unwrap_or_default(),
        listens,
        host,
        secret: secret(look, &handed_over)?.ok_or_else(|| demand("DHOLE_SECRET_FILE"))?,
        transport,
        encrypts,
        launcher: launcher(look, &handed_over)?,
    };
    let membership = member(look, words, node, nodes, Way::Meet(Box::new(meet)))?;
    Ok(Some(
        membership.setting("DHOLE_TRANSPORT", transport.name()),
    ))
}

/// The line to `dhole run`.
fn launcher(
    look: Look<'_>,
    handed_over: &HandedOver,
) -> Result<Option<Launcher>, EnvironmentError> {
    let Some(fd) = number(look, "DHOLE_LAUNCHER_FD", 0, i32::MAX as u64)? else {
        return Ok(None);
    };
    let own = inherited::descriptor(fd as i32, handed_over).and_then(Launcher::new);
    let expected = format!("the descriptor of a socket{PASSED_ON}");
    own.map(Some)
        .map_err(|_| wrong("DHOLE_LAUNCHER_FD", &fd, expected))
}

/// Which files are under the numbers that a launcher hands over.
fn handed_over(look: Look<'_>) -> Result<HandedOver, EnvironmentError> {
    const VARIABLE: &str = "DHOLE_INHERITED";
    let said = text(look, VARIABLE)?.unwrap_or_default();
    let expected = || "NUMBER:DEVICE:INODE of descriptors, with spaces between".to_owned();
    said.parse().map_err(|_| wrong(VARIABLE, &said, expected()))
}

fn listener(fd: i32, handed_over: &HandedOver) -> Result<TcpListener, EnvironmentError> {
    let listens = |fd: &OwnedFd| rustix::net::sockopt::socket_acceptconn(fd).unwrap_or(false);
    let fd_or_none = inherited::descriptor(fd, handed_over);
    let fd_or_none = fd_or_none.ok().filter(listens);
    let expected = || format!("the descriptor of a socket that listens{PASSED_ON}");
    fd_or_none
        .map(TcpListener::from)
        .ok_or_else(|| wrong("DHOLE_MEETING_FD", &fd, expected()))
}

/// The secret, from a descriptor or else from a file.
fn secret(look: Look<'_>, handed_over: &HandedOver) -> Result<Option<Secret>, EnvironmentError> {
    if let Some(fd) = number(look, "DHOLE_SECRET_FD", 0, i32::MAX as u64)? {
        let read = inherited::descriptor(fd as i32, handed_over)
            .map_err(SecretError::Inherited)
            .and_then(|fd| secret_of(&File::from(fd)));
        let from = PathBuf::from(format!("DHOLE_SECRET_FD={fd}"));
        return read
            .map(Some)
            .map_err(|cause| EnvironmentError::Secret { from, cause });
    }
    let path = look("DHOLE_SECRET_FILE").filter(|path| !path.is_empty());
    let Some(path) = path.map(PathBuf::from) else {
        return Ok(None);
    };
    match secret_in(&path) {
        Ok(secret) => Ok(Some(secret)),
        Err(cause) => Err(EnvironmentError::Secret { from: path, cause }),
    }
}

/// The secret in a file that only its owner may read, who is this user or root.
fn secret_in(path: &Path) -> Result<Secret, SecretError> {
    // A pipe without a writer would be waited for.
    let file = File::options()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32)
        .open(path)?;
    let about = file.metadata()?;
    if about.mode() & 0o077 != 0 {
        let mode = about.mode() & 0o777;
        return Err(SecretError::Readable { mode });
    }
    let owner = about.uid();
    if owner != 0 && owner != rustix::process::geteuid().as_raw() {
        return Err(SecretError::Foreign { owner });
    }
    secret_of(&file)
}

/// The secret in a file, from its beginning, or in a pipe. Of a file every process can read it that
/// has the same descriptor: programs that follow each other in one script.
fn secret_of(file: &File) -> Result<Secret, SecretError> {
    let mut bytes = vec![0; Secret::MOST_BYTES + 1];
    let mut filled = 0;
    while filled < bytes.len() {
        let rest = &mut bytes[filled..];
        let read = match file.read_at(rest, filled as u64) {
            Err(cause) if cause.kind() == ErrorKind::NotSeekable => (&*file).read(rest),
            read => read,
        };
        match read {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(cause) if cause.kind() == ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause.into()),
        }
    }
    Secret::new(&bytes[..filled])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use dhole_net::Waiting;
    use dhole_net::variables::{OF_A_NODE, waiting};
    use std::io::Write as _;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn what_is_said_of_waiting_goes_before_what_a_program_says() {
        let program = Waiting {
            spin: Duration::ZERO,
            backoff: Duration::from_micros(7),
            sleep: Duration::from_millis(8),
        };
        assert_eq!(waiting(&|_| None, program).unwrap(), program);
        let said = |name: &str| match name {
            "DHOLE_SPIN_US" => Some(OsString::from("25")),
            "DHOLE_SLEEP_MS" => Some(OsString::from("9")),
            _ => None,
        };
        let (spin, sleep) = (Duration::from_micros(25), Duration::from_millis(9));
        let expected = Waiting {
            spin,
            sleep,
            backoff: Duration::from_micros(7),
        };
        assert_eq!(waiting(&said, program).unwrap(), expected);
    }

    /// What `read` makes of these variables beside those of a sound node 1 of 2.
    fn with(changed: &[(&str, &str)]) -> Result<Option<Membership>, JoinError> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"a secret of enough bytes\n").unwrap();
        let path = file.path().to_str().unwrap();
        let sound = [
            ("DHOLE_NODE", "1"),
            ("DHOLE_NODES", "2"),
            ("DHOLE_MEETING", "127.0.0.1:7"),
            ("DHOLE_SECRET_FILE", path),
        ];
        let all = changed.iter().chain(&sound);
        let look = |name: &str| {
            let found = all.clone().find(|(n, _)| *n == name);
            found.map(|(_, value)| OsString::from(value))
        };
        read(&look, std::iter::empty())
    }

    #[test]
    fn a_sound_environment_says_who_one_is_and_shows_no_secret() {
        let membership = with(&[]).unwrap().unwrap();
        assert_eq!((membership.node(), membership.nodes()), (NodeId(1), 2));
        assert!(!format!("{membership:?}").contains("enough"));
    }

    #[test]
    fn whoever_is_told_of_a_cluster_and_not_which_node_it_is_hears_what_is_missing() {
        assert!(read(&|_| None, std::iter::empty()).unwrap().is_none());
        // What a user says of all runs makes no node.
        let look = |name: &str| (name == "DHOLE_TRANSPORT").then(|| OsString::from("udp"));
        assert!(read(&look, std::iter::empty()).unwrap().is_none());
        for variable in OF_A_NODE.into_iter().chain([RUN]) {
            let look = |name: &str| (name == variable).then(|| OsString::from("1"));
            let said = read(&look, std::iter::empty()).unwrap_err().to_string();
            assert_eq!(said, format!("{variable} is set, but DHOLE_NODE is not"));
        }
    }

    #[test]
    fn what_mpis_launchers_start_may_have_the_name_of_a_run_and_nothing_else_of_a_node() {
        let launched = [("OMPI_COMM_WORLD_SIZE", "2"), ("OMPI_COMM_WORLD_RANK", "1")];
        let beside = |variable: &str| {
            let all = launched.into_iter().chain([(variable, "x")]);
            let all: Vec<_> = all.collect();
            let look = |name: &str| {
                let found = all.iter().find(|(n, _)| *n == name);
                found.map(|(_, value)| OsString::from(value))
            };
            read(&look, std::iter::empty())
        };
        match beside(RUN) {
            Ok(member) => assert_eq!(member.map(|it| it.node()), Some(NodeId(1))),
            // Where there is no MPI in the program, that is what is told.
            Err(error) => assert!(error.to_string().contains("feature `mpi`"), "{error}"),
        }
        for variable in OF_A_NODE {
            let said = beside(variable).unwrap_err().to_string();
            assert_eq!(said, format!("{variable} is set, but DHOLE_NODE is not"));
        }
    }

    #[test]
    fn what_cannot_be_is_told_by_variable() {
        for (variable, value) in [
            ("DHOLE_NODE", "2"),
            ("DHOLE_NODE", "-1"),
            ("DHOLE_NODES", "0"),
            ("DHOLE_NODES", "1025"),
            ("DHOLE_MEETING", ""),
            ("DHOLE_TRANSPORT", "pigeon"),
            ("DHOLE_TLS", "perhaps"),
            ("DHOLE_JOIN_MS", "0"),
            ("DHOLE_BOUND_MS", "1"),
            ("DHOLE_SPIN_US", "a while"),
            ("DHOLE_BACKOFF_US", "-1"),
            ("DHOLE_SLEEP_MS", "0"),
            ("DHOLE_SECRET_FILE", "/nowhere/at/all"),
            ("DHOLE_SECRET_FD", "987654"),
            ("DHOLE_INHERITED", "3:of a file"),
        ] {
            let said = with(&[(variable, value)]).unwrap_err().to_string();
            assert!(said.contains(variable) || said.contains(value), "{said}");
        }
    }

    #[test]
    fn only_node_0_is_given_a_listener_and_it_must_be_one() {
        let file = File::open("/dev/null").unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&file).to_string();
        assert!(with(&[("DHOLE_MEETING_FD", &fd)]).is_ok());
        let wrong = with(&[("DHOLE_NODE", "0"), ("DHOLE_MEETING_FD", &fd)]).unwrap_err();
        assert!(wrong.to_string().contains("a socket that listens"));
    }

    #[test]
    fn a_secret_that_others_may_read_is_refused() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"a secret of enough bytes").unwrap();
        assert!(secret_in(file.path()).is_ok());
        for mode in [0o640, 0o604, 0o660] {
            let permissions = std::fs::Permissions::from_mode(mode);
            file.as_file().set_permissions(permissions).unwrap();
            let refused = secret_in(file.path()).unwrap_err();
            assert!(matches!(refused, SecretError::Readable { .. }), "{refused}");
        }
    }
}
