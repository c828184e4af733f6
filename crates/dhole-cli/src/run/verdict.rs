//! The outcome of a run: the node to blame, and the exit code.

use signal_hook::consts::SIGPIPE;

use super::gathering::{Failed, Lost};
use super::stop::Stop;
use super::supervise::Cluster;
use crate::child::End;
use crate::say::complain;

/// The exit code if no node failed, but nodes never joined, or their output was lost.
const OF_THE_RUN: u8 = 1;

impl Cluster<'_> {
    /// Reports which node failed, and returns the exit code. One of these pulls the others down: a
    /// node that a signal ended, that reported its own failure, that was lost, or that never came.
    /// The others then end with errors of their own, and may do so before its end is seen.
    pub fn report(&self, asked: bool) -> u8 {
        match self.signalled {
            Some(SIGPIPE) => return OF_THE_RUN,
            Some(signal) => return 128u8.wrapping_add(signal as u8),
            None => {}
        }
        let survivors = self.ended.len() - self.failures().count();
        // A node ends well only if its run did, and that goes on only for those who may. The others
        // do what a lost node had to do; no node replaces one that fails after the run.
        let mut failures = self.failures();
        let goes_on = failures.all(|(node, _)| self.goes_on_without(*node));
        if goes_on && survivors > 0 && survivors < self.ended.len() && !self.gathering.is_empty() {
            for (node, end) in self.failures() {
                self.blame(*node, end);
            }
            let mut late = self.failures();
            return match late.find(|(node, _)| self.gathering.is_over(*node)) {
                Some((node, end)) => {
                    let name = self.name(*node);
                    complain(format_args!(
                        "the run of {name} was over: what it had to print may be missing"
                    ));
                    end.code
                }
                None => self.nobody_printed().unwrap_or(0),
            };
        }
        let failed = self.gathering.failed();
        if let Some((node, end)) = self.ended_by_signal(asked, failed) {
            self.blame(*node, end);
            return end.code;
        }
        if let (Some((node, stop)), Some((_, first))) =
            (self.stopped_early(), self.failures().next())
        {
            let (name, process, by) = (self.name(*node), stop.process, stop.by());
            complain(format_args!(
                "{name} (process {process}) was stopped{by} before it had joined the others, and \
                 did not go on"
            ));
            return first.code;
        }
        if let (Some(failed), Some((_, first))) = (failed, self.failures().next()) {
            return self.blame_by_its_word(failed, first);
        }
        if let Some((node, code)) = self.exited() {
            let name = self.name(node);
            complain(format_args!("the program on {name} exited with {code}"));
            return code;
        }
        if let Some(node) = self.gathering.stood_up() {
            let name = self.name(node);
            complain(format_args!(
                "{name} ended, without an error, before it had joined the others"
            ));
            return OF_THE_RUN;
        }
        match self.failures().next() {
            Some((node, end)) => self.blame_for_a_loss(*node, end, asked),
            None if self.gathering.is_empty() => {
                let program = self.wanted.program[0].to_string_lossy();
                complain(format_args!(
                    "none of the processes joined the others: \
                     `{program}` ended without calling dhole::run"
                ));
                OF_THE_RUN
            }
            None => 0,
        }
    }

    /// The exit code where node 0 is lost, and the node that prints the results in its place has
    /// printed nothing since its run was over.
    fn nobody_printed(&self) -> Option<u8> {
        let (_, end) = self.failures().find(|(node, _)| *node == 0)?;
        let well = self.ended.iter().filter(|(_, end)| end.is_success());
        let first = well.map(|(node, _)| *node).min()?;
        // On another machine the clock is another.
        let is_here = self.places[usize::from(first)].is_none();
        let over_ns = self.gathering.over_at_ns(first).filter(|_| is_here);
        let last_ns = self.printed.get(&first).copied();
        let since = match (last_ns, over_ns) {
            (Some(last), Some(over)) if last < over => " since the run was over",
            (Some(_), _) => return None,
            (None, _) => "",
        };
        let (lost, first) = (self.name(0), self.name(first));
        complain(format_args!(
            "{lost} was lost, and {first}, which prints the results in its place, has printed \
             nothing{since}: the program prints them only where node 0 runs (Report::is_first)"
        ));
        Some(end.code)
    }

    /// The first node that was ended by a signal that this command did not send, and not because
    /// another failed. A node may abort because it has lost another, and be seen to end before it.
    fn ended_by_signal(&self, asked: bool, failed: Option<&Failed>) -> Option<&(u16, End)> {
        let before = failed.map_or(self.ended.len(), |failed| failed.after);
        let ended = self.ended[..before].iter().filter(|_| !asked);
        let mut ended = ended.filter(|(node, end)| self.signal(*node, end).is_some());
        let is_lost = |node| self.gathering.lost().is_some_and(|lost| lost.node == node);
        let lost = ended.clone().find(|(node, _)| is_lost(*node));
        lost.or_else(|| ended.next())
    }

    /// The node whose program first ended the run with an exit code, and has ended with it.
    fn exited(&self) -> Option<(u16, u8)> {
        let mut exits = self.gathering.exits().iter().copied();
        exits.find(|(node, code)| {
            let mut failures = self.failures();
            failures.any(|(of, end)| of == node && end.code == *code)
        })
    }

    /// Names the node that reported its own failure, if `first` failed first.
    fn blame_by_its_word(&self, failed: &Failed, first: &End) -> u8 {
        let Failed { node, how, .. } = failed;
        let name = self.name(*node);
        let mut own = self.failures().filter(|(of, _)| of == node);
        match own.next() {
            Some((_, end)) if self.signal(*node, end).is_none() => {
                let ended = self.describe(*node, end);
                complain(format_args!("{name} {ended}: {how}"));
                end.code
            }
            _ => {
                complain(format_args!("{name} failed: {how}"));
                first.code
            }
        }
    }

    /// Names the node that others lost, or that never came. Otherwise names `first`, which failed
    /// first.
    fn blame_for_a_loss(&self, first: u16, end: &End, asked: bool) -> u8 {
        match self.lost_first(asked) {
            Some((_, Some((node, end)))) => {
                self.blame(*node, end);
                return end.code;
            }
            Some((lost, None)) => complain(format_args!("{}", self.in_words(lost))),
            None => match self.gathering.never_came(self.places.len() as u16, first) {
                Some(missing) => {
                    let name = self.name(missing);
                    complain(format_args!(
                        "{name} did not come to join the others in time"
                    ));
                }
                None => match self.stuck_while_joining(first) {
                    Some(stuck) => {
                        let name = self.name(stuck);
                        complain(format_args!(
                            "{name} began to join the others and kept silent then: it was stopped, \
                             or hangs"
                        ));
                    }
                    None => self.blame(first, end),
                },
            },
        }
        end.code
    }

    /// A node that was stopped before it had joined the others, and did not go on.
    fn stopped_early(&self) -> Option<(&u16, &Stop)> {
        let nodes = &self.gathering;
        let is_early = |node: u16| !nodes.has_joined(node) || nodes.is_joining(node);
        self.stopped.iter().find(|(node, _)| is_early(**node))
    }

    /// A node that did not go on while `first` waited for it to join, and had to be killed.
    fn stuck_while_joining(&self, first: u16) -> Option<u16> {
        let joins = |node: &u16| self.gathering.is_joining(*node);
        let mut silent = self.silent.iter().copied().filter(joins);
        silent.next().filter(|_| joins(&first))
    }

    /// Which node was lost to which, and how.
    pub fn in_words(&self, Lost { node, by, how }: &Lost) -> String {
        let (name, by) = (self.name(*node), self.name(*by));
        let stop = self.stopped.get(node).map(|stop| format!(": its {stop}"));
        let news = stop.filter(|stop| !how.ends_with(stop)).unwrap_or_default();
        format!("{name} was lost to {by}: {how}{news}")
    }

    fn blame(&self, node: u16, end: &End) {
        let (name, ended) = (self.name(node), self.describe(node, end));
        complain(format_args!("{name} {ended}"));
    }

    /// The node that was lost first, with its failure if it failed by itself. It came before the
    /// errors of the nodes that lost it.
    fn lost_first(&self, asked: bool) -> Option<(&Lost, Option<&(u16, End)>)> {
        let lost = self.gathering.lost()?;
        let mut failures = self.failures().filter(|_| !asked);
        let own = failures.find(|(node, _)| *node == lost.node);
        let first = self.failures().next().map(|(node, _)| *node);
        let known = usize::from(lost.node) < self.places.len();
        (known && first != Some(lost.node)).then_some((lost, own))
    }

    /// The signal that ended a node. An agent passes it on as an exit code, as shells do. Larger
    /// codes are the program's own, or the remote shell's.
    fn signal(&self, node: u16, end: &End) -> Option<i32> {
        let remote = self.places[usize::from(node)].is_some();
        let code = i32::from(end.code);
        let passed_on = remote && (129..=192).contains(&code);
        end.signal.or(passed_on.then_some(code - 128))
    }

    /// The end of a node, in words.
    fn describe(&self, node: u16, end: &End) -> String {
        let remote = self.places[usize::from(node)].is_some();
        if remote && !self.answered.contains(&node) {
            let (rsh, code) = (&self.wanted.rsh, end.code);
            return format!("was not started: `{rsh}` ended with exit code {code}");
        }
        match self.signal(node, end) {
            Some(signal) => match signal_hook::low_level::signal_name(signal) {
                Some(name) => format!("was ended by signal {signal} ({name})"),
                None => format!("was ended by signal {signal}"),
            },
            None => format!("failed with exit code {}", end.code),
        }
    }

    /// The name of a node.
    pub fn name(&self, node: u16) -> String {
        match &self.places[usize::from(node)] {
            Some(host) => format!("node {node} on {}", host.name),
            None => format!("node {node}"),
        }
    }
}
