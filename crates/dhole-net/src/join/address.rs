//! Names and addresses of meeting points.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// The longest that one try to connect may take.
const LONGEST_TRY: Duration = Duration::from_secs(2);

/// The addresses that `name`, which is `host:port`, has. A name server may take its time: the
/// answer is waited for no longer than said.
pub(crate) fn resolve(name: &str, within: Duration) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = name.parse() {
        return Ok(vec![address]);
    }
    let (tell, told) = mpsc::channel();
    let asked = name.to_owned();
    std::thread::spawn(move || {
        let found = asked.to_socket_addrs().map(|all| all.collect::<Vec<_>>());
        // Nobody may be waiting for it any more.
        let _ = tell.send(found);
    });
    let silent = |_| io::Error::new(ErrorKind::TimedOut, "no name server answers");
    told.recv_timeout(within).map_err(silent)?
}

/// A connection to one of the addresses that `name` has.
pub(crate) fn connect(name: &str, within: Duration) -> io::Result<(TcpStream, SocketAddr)> {
    let until = Instant::now() + within;
    let mut last = io::Error::new(ErrorKind::NotFound, "the name has no address");
    for address in resolve(name, within)? {
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

/// How others reach a listener at `host`: behind a translated address they cannot use the one that
/// this process sees.
pub(crate) fn with_port(host: &str, listens: SocketAddr) -> String {
    match host.contains(':') && !host.starts_with('[') {
        true => format!("[{host}]:{}", listens.port()),
        false => format!("{host}:{}", listens.port()),
    }
}
