//! Names and addresses of meeting points.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use dhole_space::runtime_thread;

/// The longest that one try to connect may take.
const LONGEST_TRY: Duration = Duration::from_secs(2);

/// The addresses that `name`, which is `host:port` or `[host]:port`, has. A name server may take
/// its time: the answer is waited for no longer than said.
pub(crate) fn resolve(name: &str, within: Duration) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = name.parse() {
        return Ok(vec![address]);
    }
    let (tell, told) = mpsc::channel();
    let asked = name.to_owned();
    let ask = move || {
        let found = match bracketed(&asked) {
            // The system knows the zones of this machine by their names, as in `fe80::1%eth0`.
            Some(host_and_port) => host_and_port.to_socket_addrs(),
            None => asked.to_socket_addrs(),
        };
        // Nobody may be waiting for it any more.
        let _ = tell.send(found.map(Vec::from_iter));
    };
    runtime_thread::spawn("dhole-resolver", ask)?;
    let silent = |_| io::Error::new(ErrorKind::TimedOut, "no name server answers");
    told.recv_timeout(within).map_err(silent)?
}

/// The host and the port of `[host]:port`.
fn bracketed(name: &str) -> Option<(&str, u16)> {
    let (host, port) = name.strip_prefix('[')?.split_once("]:")?;
    Some((host, port.parse().ok()?))
}

/// A connection to one of the addresses that `name` has. Where such an address goes for one link
/// only and does not say for which, it is taken to be that of `zone`.
pub(crate) fn connect(
    name: &str,
    zone: u32,
    within: Duration,
) -> io::Result<(TcpStream, SocketAddr)> {
    let until = Instant::now() + within;
    let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for address in resolve(name, within)? {
        let address = in_zone(address, zone);
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::from(ErrorKind::TimedOut));
        }
        match TcpStream::connect_timeout(&address, left.min(LONGEST_TRY)) {
            Ok(stream) => return Ok((stream, address)),
            Err(cause) => last = cause,
        }
    }
    Err(last)
}

/// The zone that an address names by its number on this machine; 0 where it names none.
pub(crate) fn zone(address: SocketAddr) -> u32 {
    match address {
        SocketAddr::V6(address) => address.scope_id(),
        SocketAddr::V4(_) => 0,
    }
}

/// This address in a zone, where it goes for one link only and names no zone.
pub(crate) fn in_zone(mut address: SocketAddr, zone: u32) -> SocketAddr {
    if let SocketAddr::V6(address) = &mut address
        && address.ip().is_unicast_link_local()
        && address.scope_id() == 0
    {
        address.set_scope_id(zone);
    }
    address
}

/// This address as other machines can use it: the number of a zone is each machine's own.
pub(crate) fn without_zone(mut address: SocketAddr) -> SocketAddr {
    if let SocketAddr::V6(address) = &mut address {
        address.set_scope_id(0);
    }
    address
}

/// How others reach a listener at `host`: behind a translated address they cannot use the one that
/// this process sees.
pub(crate) fn with_port(host: &str, listens: SocketAddr) -> String {
    match host.contains(':') && !host.starts_with('[') {
        true => format!("[{host}]:{}", listens.port()),
        false => format!("{host}:{}", listens.port()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_is_this_machines_and_goes_to_addresses_of_one_link_alone() {
        let here = resolve("[fe80::1%lo]:7", Duration::from_secs(5)).expect("every machine has lo");
        assert_ne!(zone(here[0]), 0);
        assert_eq!(without_zone(here[0]).to_string(), "[fe80::1]:7");
        assert_eq!(in_zone(without_zone(here[0]), zone(here[0])), here[0]);
        let anywhere: SocketAddr = "[2001:db8::1]:7".parse().expect("an address");
        assert_eq!(in_zone(anywhere, 3), anywhere);
    }

    #[test]
    fn a_name_in_brackets_is_a_host_and_a_port() {
        assert_eq!(bracketed("[fe80::1%eth0]:7"), Some(("fe80::1%eth0", 7)));
        for wrong in ["fe80::1:7", "[fe80::1]", "[fe80::1]:x", "red:7"] {
            assert_eq!(bracketed(wrong), None, "{wrong}");
        }
        assert!(resolve("[fe80::1%nowhere]:7", Duration::from_secs(5)).is_err());
    }
}
