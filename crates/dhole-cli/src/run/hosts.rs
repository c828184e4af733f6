//! Reads the file of hosts: `host slots=2 address=10.0.0.1`, one a line. `#` begins a comment.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::net::Ipv6Addr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use dhole::MAX_NODES;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

use super::error::RunError;

/// The most bytes of a file: some files have no end.
const MOST_BYTES: usize = 1 << 20;
/// The time for the other end of a pipe to write everything.
const WITHIN: Duration = Duration::from_secs(10);

/// A machine of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// Its name for the remote shell.
    pub name: String,
    /// The most nodes on it.
    pub slots: usize,
    /// Its address for the other machines, if that is not its name.
    pub address: Option<String>,
}

/// The place of a node: this machine if there is no host.
pub type Place = Option<Host>;

/// Reads the file, which may be a pipe.
pub fn read(file: &Path) -> Result<Vec<Host>, RunError> {
    let text = text(file, WITHIN).map_err(|cause| RunError::Hosts {
        file: file.to_owned(),
        cause,
    })?;
    parse(&text).map_err(|(line, what)| RunError::HostsLine {
        file: file.to_owned(),
        line,
        what,
    })
}

fn text(file: &Path, within: Duration) -> io::Result<String> {
    let until = Instant::now() + within;
    // A pipe that nobody writes to would be waited for.
    let mut options = File::options();
    let nonblocking = OFlags::NONBLOCK.bits() as i32;
    let mut from = options.read(true).custom_flags(nonblocking).open(file)?;
    let mut bytes = vec![0; MOST_BYTES + 1];
    let mut filled = 0;
    while filled < bytes.len() {
        await_more(&from, until)?;
        match from.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(e) if matches!(e.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            Err(cause) => return Err(cause),
        }
    }
    if filled > MOST_BYTES {
        let what = format!("it has more than {MOST_BYTES} bytes, and no cluster has so many hosts");
        return Err(io::Error::new(ErrorKind::FileTooLarge, what));
    }
    bytes.truncate(filled);
    let no_text = |_| io::Error::new(ErrorKind::InvalidData, "it is no text in UTF-8");
    String::from_utf8(bytes).map_err(no_text)
}

/// Waits until there is something to read, or the end.
fn await_more(from: &File, until: Instant) -> io::Result<()> {
    let left = until.saturating_duration_since(Instant::now());
    let left = Timespec {
        tv_sec: left.as_secs() as i64,
        tv_nsec: left.subsec_nanos().into(),
    };
    match poll(&mut [PollFd::new(from, PollFlags::IN)], Some(&left)) {
        Ok(0) => {
            let what = format!("nobody has written it to its end within {WITHIN:?}");
            Err(io::Error::new(ErrorKind::TimedOut, what))
        }
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

fn parse(text: &str) -> Result<Vec<Host>, (usize, String)> {
    let mut hosts = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let wrong = |what: String| (number + 1, what);
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let Some(name) = words.next() else {
            continue;
        };
        if name.starts_with('-') || name.contains('=') {
            return Err(wrong(format!("`{name}` is not the name of a host")));
        }
        let mut host = Host {
            name: without_port(name).map_err(wrong)?.to_owned(),
            slots: 1,
            address: None,
        };
        for word in words {
            match word.split_once('=') {
                Some(("slots", slots)) => match slots.parse() {
                    Ok(slots) if (1..=MAX_NODES).contains(&slots) => host.slots = slots,
                    _ => {
                        let what = format!("`{word}`: 1 to {MAX_NODES} slots are expected");
                        return Err(wrong(what));
                    }
                },
                Some(("address", address)) if !address.is_empty() => {
                    let address = without_port(address).map_err(wrong)?;
                    host.address = Some(address.to_owned());
                }
                _ => {
                    return Err(wrong(format!(
                        "`{word}`: slots=N or address=NAME is expected"
                    )));
                }
            }
        }
        hosts.push(host);
    }
    Ok(hosts)
}

/// Refuses a number after a colon, as in other programs' files of hosts: it could be slots as well
/// as a port. An IPv6 address, with its zone or without, is a name like any other; it may stand in
/// brackets, which are left out.
fn without_port(name: &str) -> Result<&str, String> {
    let is_address = |name: &str| {
        let address = name
            .split_once('%')
            .map_or(name, |(address, _zone)| address);
        address.parse::<Ipv6Addr>().is_ok()
    };
    let bracketed = name.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    let (host, rest) = match (bracketed, name.split_once(':')) {
        (Some((address, "")), _) if is_address(address) => return Ok(address),
        (Some((address, port)), _) if is_address(address) => {
            (address, port.trim_start_matches(':'))
        }
        _ if name.contains(['[', ']']) => {
            return Err(format!(
                "`{name}`: brackets stand around an IPv6 address, as in [fd00::1]"
            ));
        }
        (_, Some(_)) if is_address(name) => return Ok(name),
        (_, Some(parts)) => parts,
        (_, None) => return Ok(name),
    };
    let slots = match rest.parse::<usize>() {
        Ok(slots) => slots.to_string(),
        Err(_) => "N".to_owned(),
    };
    Err(format!(
        "`{name}` is neither a name nor an address: for {slots} nodes write \
         `{host} slots={slots}`, for a port `--rsh \"ssh -p {slots}\"`"
    ))
}

/// The place of each node, in their order.
pub fn places(hosts: Option<&[Host]>, nodes: Option<u16>) -> Result<Vec<Place>, RunError> {
    let nodes = nodes.map(usize::from);
    let Some(hosts) = hosts else {
        return Ok(vec![None; nodes.unwrap_or(1)]);
    };
    let slots: usize = hosts.iter().map(|host| host.slots).sum();
    if slots == 0 {
        return Err(RunError::NoHosts);
    }
    let nodes = nodes.unwrap_or(slots);
    if nodes > MAX_NODES {
        return Err(RunError::TooManySlots { slots });
    }
    if nodes > slots || nodes == 0 {
        return Err(RunError::Slots { nodes, slots });
    }
    let all = hosts
        .iter()
        .flat_map(|host| std::iter::repeat_n(host, host.slots));
    Ok(all.take(nodes).cloned().map(Some).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_numbered_in_the_order_of_the_hosts() {
        let text = "# two machines\nred slots=2 address=10.0.0.1\n\nblue # one slot\n";
        let hosts = parse(text).unwrap();
        let names = |nodes| -> Vec<String> {
            let places = places(Some(&hosts), nodes).unwrap();
            places.into_iter().map(|p| p.unwrap().name).collect()
        };
        assert_eq!(names(None), ["red", "red", "blue"]);
        assert_eq!(names(Some(2)), ["red", "red"]);
        assert!(places(Some(&hosts), Some(4)).is_err());
        assert_eq!(hosts[0].address.as_deref(), Some("10.0.0.1"));
    }

    #[test]
    fn a_line_that_makes_no_sense_is_named() {
        for (text, line) in [
            ("red slots=0", 1),
            ("red\nblue slots", 2),
            ("-oProxyCommand=evil", 1),
            ("red address=", 1),
            ("red\n\nslots=2", 3),
            ("red address=10.0.0.1:22", 1),
        ] {
            assert_eq!(parse(text).unwrap_err().0, line, "{text}");
        }
    }

    #[test]
    fn slots_behind_a_colon_are_refused_with_what_to_write() {
        let (_, said) = parse("red:2").unwrap_err();
        assert!(said.contains("write `red slots=2`"), "{said}");
        assert!(said.contains("ssh -p 2"), "{said}");
    }

    #[test]
    fn an_address_with_a_zone_is_a_name() {
        let hosts = parse("fe80::1%eth0 slots=2\nred address=fe80::2%eth0\n::1\n").unwrap();
        assert_eq!(hosts[0].name, "fe80::1%eth0");
        assert_eq!(hosts[1].address.as_deref(), Some("fe80::2%eth0"));
    }

    #[test]
    fn an_address_in_brackets_is_one_without() {
        let hosts = parse("[fd00::1] slots=2\nred address=[fe80::2%eth0]\n").unwrap();
        assert_eq!(hosts[0].name, "fd00::1");
        assert_eq!(hosts[1].address.as_deref(), Some("fe80::2%eth0"));
        let (line, said) = parse("red\n[fd00::1]:2").unwrap_err();
        assert_eq!(line, 2);
        assert!(said.contains("write `fd00::1 slots=2`"), "{said}");
        for wrong in [
            "[red]",
            "[fd00::1",
            "fd00::1]",
            "[]",
            "[10.0.0.1]",
            "red address=[red]",
        ] {
            let (_, said) = parse(wrong).unwrap_err();
            assert!(said.contains("brackets stand around"), "{wrong}: {said}");
        }
    }

    #[test]
    fn more_slots_than_a_cluster_has_nodes_and_no_hosts_at_all_are_told() {
        let many = parse("red slots=1024\nblue slots=1").unwrap();
        let refused = places(Some(&many), None).unwrap_err().to_string();
        assert!(refused.contains("1025 slots"), "{refused}");
        assert_eq!(places(Some(&many), Some(1024)).unwrap().len(), 1024);
        let none = parse("# nobody").unwrap();
        assert!(matches!(
            places(Some(&none), Some(1)),
            Err(RunError::NoHosts)
        ));
    }

    #[test]
    fn a_file_without_an_end_is_not_read_for_ever() {
        let endless = text(Path::new("/dev/zero"), WITHIN).unwrap_err();
        assert_eq!(endless.kind(), ErrorKind::FileTooLarge);
        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        let silent = text(&fifo, Duration::from_millis(20)).unwrap_err();
        assert_eq!(silent.kind(), ErrorKind::TimedOut);
        let writes = fifo.clone();
        let writer = std::thread::spawn(move || std::fs::write(writes, "red slots=2"));
        assert_eq!(text(&fifo, WITHIN).unwrap(), "red slots=2");
        writer.join().unwrap().unwrap();
    }
}
