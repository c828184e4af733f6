//! The file of hosts: `host slots=2 address=10.0.0.1`, one a line, `#` begins a comment.

use std::fs;
use std::path::Path;

use super::error::RunError;

/// A machine of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Host {
    /// What the remote shell calls it.
    pub name: String,
    /// The nodes there can be on it.
    pub slots: usize,
    /// How the other machines reach it, if not by its name.
    pub address: Option<String>,
}

/// Where a node runs: on this machine if there is no host.
pub type Place = Option<Host>;

/// Reads the file.
pub fn read(file: &Path) -> Result<Vec<Host>, RunError> {
    let text = fs::read_to_string(file).map_err(|cause| RunError::Hosts {
        file: file.to_owned(),
        cause,
    })?;
    parse(&text).map_err(|(line, what)| RunError::HostsLine {
        file: file.to_owned(),
        line,
        what,
    })
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
            name: name.to_owned(),
            slots: 1,
            address: None,
        };
        for word in words {
            match word.split_once('=') {
                Some(("slots", slots)) => match slots.parse() {
                    Ok(slots) if (1..=1024).contains(&slots) => host.slots = slots,
                    _ => return Err(wrong(format!("`{word}`: 1 to 1024 slots are expected"))),
                },
                Some(("address", address)) if !address.is_empty() => {
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

/// Where each node runs, in their order.
pub fn places(hosts: Option<&[Host]>, nodes: Option<u16>) -> Result<Vec<Place>, RunError> {
    let nodes = nodes.map(usize::from);
    let Some(hosts) = hosts else {
        return Ok(vec![None; nodes.unwrap_or(1)]);
    };
    let all = hosts
        .iter()
        .flat_map(|host| std::iter::repeat_n(host, host.slots));
    let slots = all.clone().count();
    let nodes = nodes.unwrap_or(slots);
    if nodes > slots || nodes == 0 {
        return Err(RunError::Slots { nodes, slots });
    }
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
        ] {
            assert_eq!(parse(text).unwrap_err().0, line, "{text}");
        }
    }
}
