//! `dhole agent`: starts one node for a `dhole run` on another machine, and ends it when that ends.
//!
//! The first line on standard input is an [`Envelope`]. Lines `signal N` follow, and lines that
//! the node is to read. The end of the input ends the node. The agent's first line on standard
//! output is its answer; the node's output follows. The agent writes the node's reports ([`Word`])
//! into its standard error, and `dhole run` takes them out again ([`Heard`](super::heard::Heard)).

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV6, TcpListener, ToSocketAddrs};
use std::process::Stdio;
use std::sync::mpsc;
use std::time::Duration;

use dhole_space::runtime_thread;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use super::error::RunError;
use super::line::Word;
use super::nodes::{Event, Link, Process};
use super::order::Order;
use super::output::{LinePrefix, Source, pass_on};
use super::secret::Secret;
use crate::child::End;
use crate::say;

/// The most bytes of an order: a command line and some more.
const LONGEST_ORDER_BYTES: u64 = 4 << 20;
/// The time that the node has to end when `dhole run`, or the connection to it, is gone.
const ALONE_WITHIN: Duration = Duration::from_secs(1);

/// The most connections that wait to be accepted.
const BACKLOG: i32 = 1024;

/// The beginning of an agent's answer.
const ANSWER: &str = "dhole-agent 1 ";

/// An order, with the secret. It goes through the standard input of the remote shell, which
/// encrypts it.
#[derive(Serialize, Deserialize)]
pub struct Envelope {
    /// The node to start.
    pub order: Order,
    /// The secret, which proves that it belongs to the run.
    pub secret: String,
}

impl Envelope {
    /// One line of JSON.
    pub fn to_line(&self) -> String {
        let mut line =
            serde_json::to_string(self).expect("an order is made of strings and numbers");
        line.push('\n');
        line
    }
}

/// Reads an agent's output: its answer first, then the output of its node.
pub struct Answers<R> {
    from: BufReader<R>,
    /// Called with the port in the answer; `None` once it has come.
    answered: Option<Box<dyn FnOnce(u16) + Send>>,
}

impl<R: Read> Answers<R> {
    /// The output that comes `from` an agent; `answered` gets its port.
    pub fn new(from: R, answered: impl FnOnce(u16) + Send + 'static) -> Answers<R> {
        Answers {
            from: BufReader::new(from),
            answered: Some(Box::new(answered)),
        }
    }

    /// Reads up to the agent's answer. A shell may print before it, without ending the line.
    fn begin(&mut self, answered: impl FnOnce(u16)) -> io::Result<()> {
        const MOST_BYTES: u64 = 64 << 10;
        let mut greeting = (&mut self.from).take(MOST_BYTES);
        let mut line = Vec::new();
        while greeting.read_until(b'\n', &mut line)? > 0 {
            if let Some(port) = port_in(&line) {
                answered(port);
                break;
            }
            line.clear();
        }
        Ok(())
    }
}

impl<R: Read> Read for Answers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(answered) = self.answered.take() {
            self.begin(answered)?;
        }
        self.from.read(buffer)
    }
}

impl<R: Source> Source for Answers<R> {
    fn comes(&self, within: Duration) -> bool {
        !self.from.buffer().is_empty() || self.from.get_ref().comes(within)
    }
}

/// The port in an agent's answer, if this line ends with one.
fn port_in(line: &[u8]) -> Option<u16> {
    let line = String::from_utf8_lossy(line);
    let (_greeting, port) = line.rsplit_once(ANSWER)?;
    port.trim_end().parse().ok()
}

const STARTING: &str = "starting a thread of the agent for it";

/// Executes the orders, and returns the node's exit code.
pub fn run() -> Result<u8, RunError> {
    let mut line = String::new();
    let mut input = io::BufReader::new(io::stdin());
    let read = (&mut input).take(LONGEST_ORDER_BYTES).read_line(&mut line);
    read.map_err(|cause| RunError::System {
        doing: "reading orders",
        cause,
    })?;
    // What it says instead is not repeated: there may be a secret in it.
    let envelope: Envelope = serde_json::from_str(&line).map_err(|cause| RunError::NoOrder {
        what: format!("its first line is not an order (column {})", cause.column()),
    })?;
    let Envelope { order, secret } = envelope;
    let failed = |doing| {
        let node = order.node;
        move |cause| RunError::Start { node, doing, cause }
    };
    let listener = match order.node {
        0 => Some(listen(order.host.as_deref()).map_err(failed("listening for the others"))?),
        _ => None,
    };
    let port = listener
        .as_ref()
        .map_or(Ok(0), |l| l.local_addr().map(|a| a.port()));
    let port = port.map_err(failed("listening for the others"))?;
    say::print(format!("{ANSWER}{port}\n").as_bytes()).map_err(failed("answering"))?;

    let (tell, events) = mpsc::channel();
    let (mut child, line) = order.start(&Secret::from_hex(secret), listener, |command| {
        command.stdout(Stdio::inherit()).stderr(Stdio::piped());
    })?;
    let mut stderr = child.stderr.take().expect("it was to be piped");
    let passed = tell.clone();
    let pass = move || {
        // Where it cannot be passed on, `dhole run` is gone, and the orders end too.
        let _ = pass_on(&mut stderr, &mut io::stderr(), &LinePrefix::default());
        let _ = passed.send(Event::Silent);
    };
    let passing = runtime_thread::spawn("dhole-errors", pass);
    let node = Process::watch(order.node, child, Link::Line(line), tell.clone());
    let node = node.map_err(failed(STARTING))?;
    let take_orders = move || {
        for line in input.lines().map_while(Result::ok) {
            let event = match line.strip_prefix("signal ") {
                Some(number) => number.parse().ok().map(Event::Signal),
                None => Some(Event::Elsewhere(line)),
            };
            if event.is_some_and(|event| tell.send(event).is_err()) {
                return;
            }
        }
        let _ = tell.send(Event::Alone);
    };
    let taking = runtime_thread::spawn("dhole-orders", take_orders);
    if let Err(cause) = passing.and(taking) {
        node.kill();
        return Err(failed(STARTING)(cause));
    }
    Ok(see_to_the_end(&node, &events))
}

/// Passes on a report of the node, in one write, so that the node's own output cannot divide it.
fn pass_on_word(word: &Word) {
    let _ = io::stderr().write_all(format!("{word:#}\n").as_bytes());
}

fn see_to_the_end(node: &Process, events: &mpsc::Receiver<Event>) -> u8 {
    let (mut alone, mut silent) = (false, false);
    loop {
        let event = match alone {
            false => events.recv().ok(),
            true => events.recv_timeout(ALONE_WITHIN).ok(),
        };
        match event {
            Some(Event::Ended {
                end: End { code, .. },
                ..
            }) => {
                while !silent {
                    // A process that has left the node's group may hold its standard error.
                    match events.recv_timeout(ALONE_WITHIN) {
                        Ok(event) => silent = matches!(event, Event::Silent),
                        Err(_) => break,
                    }
                }
                return code;
            }
            Some(Event::Said { word, .. }) => {
                if let Word::Meets { process } = word {
                    node.answers(process);
                }
                pass_on_word(&word);
            }
            Some(Event::Elsewhere(notice)) => node.tell(&notice),
            Some(Event::Signal(number)) if number == Signal::QUIT.as_raw() => node.ask(),
            Some(Event::Signal(number)) => {
                if let Some(signal) = Signal::from_named_raw(number) {
                    node.signal(signal);
                }
            }
            Some(Event::Alone) => {
                node.signal(Signal::TERM);
                alone = true;
            }
            Some(Event::Silent) => silent = true,
            Some(Event::Agent { .. } | Event::Unwritten | Event::Printed { .. }) => {}
            None => node.kill(),
        }
    }
}

/// Listens at the address by which other machines reach this one. If that address is not this
/// machine's, as behind address translation, listens at all addresses.
fn listen(host: Option<&str>) -> io::Result<TcpListener> {
    let own = host.and_then(|host| {
        let addresses = (host, 0).to_socket_addrs().ok()?;
        TcpListener::bind(addresses.collect::<Vec<_>>().as_slice()).ok()
    });
    own.map_or_else(listen_everywhere, Ok)
}

/// Listens at all addresses of this machine, IPv4 and IPv6 if it has both.
fn listen_everywhere() -> io::Result<TcpListener> {
    let both = || -> rustix::io::Result<TcpListener> {
        let flags = SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::INET6, SocketType::STREAM, flags, None)?;
        sockopt::set_ipv6_v6only(&socket, false)?;
        bind(&socket, &SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, 0, 0, 0))?;
        net::listen(&socket, BACKLOG)?;
        Ok(socket.into())
    };
    both().or_else(|_| TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_heard_behind_whatever_a_shell_prints_before_it() {
        for greeting in [
            "",
            "Welcome\n",
            "no end of a line ",
            "dhole-agent 1 x\nhello",
        ] {
            let said = format!("{greeting}{ANSWER}77\nwords of the node");
            let (tell, told) = mpsc::channel();
            let answered = move |port| tell.send(port).expect("it is waited for");
            let mut rest = String::new();
            let mut answers = Answers::new(said.as_bytes(), answered);
            answers.read_to_string(&mut rest).unwrap();
            assert_eq!((told.recv(), &rest[..]), (Ok(77), "words of the node"));
        }
    }

    #[test]
    fn an_agent_listens_for_both_kinds_of_addresses() {
        let listener = listen_everywhere().unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok());
    }
}
