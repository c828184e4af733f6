//! What must hold of what the members have delivered.

use std::collections::BTreeMap;

use dhole_model::NodeId;

use crate::world::{Node, World};

/// What went wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// Two members delivered different messages with one number.
    Disagreement,
    /// A member delivered out of the order of the numbers, or of an originator's broadcasts.
    OutOfOrder,
    /// A member delivered a message twice.
    Twice,
    /// A member delivered what nobody had broadcast.
    Invented,
    /// A member that goes on has broadcast something that was never delivered.
    Lost,
    /// Two members that go on have not delivered the same.
    NotUniform,
    /// A member called a message of a sound member nonsense.
    Refused,
    /// A history is longer than the window.
    Unbounded,
    /// It did not come to an end.
    Endless,
    /// What was safe is not what those have who go on.
    Unsafe,
    /// A member that goes on was never told that what it broadcast is safe.
    NeverSafe,
    /// Nobody goes on who may.
    Stuck,
}

impl Node {
    /// Whether the node is a member at the end.
    pub fn goes_on(&self) -> bool {
        !self.crashed && self.stuck.is_none()
    }
}

impl World {
    /// The first thing that is wrong when everything has come to rest.
    pub fn fault(&self) -> Result<(), (Fault, String)> {
        if let Some(error) = &self.refused {
            return Err((Fault::Refused, error.to_string()));
        }
        if self.longest > self.links.settings.window as usize {
            return Err((Fault::Unbounded, format!("a history of {}", self.longest)));
        }
        self.nodes
            .iter()
            .try_for_each(|node| self.check_log(node))?;
        self.check_agreement()?;
        self.check_uniform()?;
        self.check_safe()
    }

    fn check_safe(&self) -> Result<(), (Fault, String)> {
        for (node, of) in self.nodes.iter().enumerate().filter(|(_, of)| of.goes_on()) {
            let after = self.safe.range(of.began + 1..);
            for (number, text) in after {
                let has = |entry: &&(u64, NodeId, _)| (entry.0, &entry.2) == (*number, text);
                if !of.log.iter().any(|entry| has(&entry)) {
                    let words = String::from_utf8_lossy(text).into_owned();
                    return Err((Fault::Unsafe, format!("{number}, {words}, at node {node}")));
                }
            }
            let own = of.log.iter().filter(|(_, from, _)| from.index() == node);
            let last = own.map(|(number, ..)| *number).max().unwrap_or(0);
            if self.links.settings.confirm && of.group.safe() < last {
                let words = format!("{last} of node {node}: {} is safe", of.group.safe());
                return Err((Fault::NeverSafe, words));
            }
        }
        Ok(())
    }

    fn check_log(&self, node: &Node) -> Result<(), (Fault, String)> {
        let mut last = (0, BTreeMap::new());
        for (number, origin, text) in &node.log {
            if *number <= last.0 {
                return Err((Fault::OutOfOrder, format!("{number} after {}", last.0)));
            }
            last.0 = *number;
            let words = String::from_utf8_lossy(text).into_owned();
            let mut words = words.split([' ', ':']).map(str::parse::<u64>);
            let mut word = || words.next().and_then(Result::ok).unwrap_or(u64::MAX);
            let (of, life, serial) = (word(), word(), word());
            let sent = &self.nodes[origin.index()];
            let known = sent.life != life || sent.sent.get(serial as usize) == Some(text);
            if of != u64::from(origin.0) || !known {
                return Err((Fault::Invented, format!("{number} of {origin}")));
            }
            let before = last.1.insert((of, life), serial);
            match before {
                Some(before) if before == serial => {
                    return Err((Fault::Twice, format!("{serial} of {origin}")));
                }
                Some(before) if before > serial => {
                    let words = format!("{serial} of {origin} after {before}");
                    return Err((Fault::OutOfOrder, words));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Up to where what a node has delivered is what the group has: it may have delivered more in
    /// a view in which only the lost were with it.
    fn counts_until(&self, node: usize) -> u64 {
        let me = NodeId::at(node);
        if self.nodes[node].goes_on() {
            return u64::MAX;
        }
        let going = self.nodes.iter().filter(|other| other.goes_on());
        let known = self.nodes[node]
            .views
            .last()
            .map_or(1, |view| view.id.number);
        let later = going
            .flat_map(|other| &other.views)
            .filter(|view| view.id.number > known);
        let without = later.filter(|v| !v.members.contains(&me) || v.joined.contains(&me));
        without.map(|view| view.after).min().unwrap_or(0)
    }

    fn check_agreement(&self) -> Result<(), (Fault, String)> {
        let mut numbered: BTreeMap<u64, (usize, &[u8])> = BTreeMap::new();
        for (node, of) in self.nodes.iter().enumerate() {
            let until = self.counts_until(node);
            for (number, _, text) in of.log.iter().filter(|(number, ..)| *number <= until) {
                let (first, other) = *numbered.entry(*number).or_insert((node, text));
                if other != &**text {
                    let words = format!(
                        "{number} is {} at node {node}, and {} at node {first}",
                        String::from_utf8_lossy(text),
                        String::from_utf8_lossy(other)
                    );
                    return Err((Fault::Disagreement, words));
                }
            }
        }
        Ok(())
    }

    fn check_uniform(&self) -> Result<(), (Fault, String)> {
        let going = || {
            self.nodes
                .iter()
                .enumerate()
                .filter(|(_, node)| node.goes_on())
        };
        let end = going()
            .map(|(_, node)| node.log.last().map_or(0, |last| last.0))
            .max();
        for (number, node) in going() {
            let mine = node.log.last().map_or(node.began, |last| last.0);
            if Some(mine) < end {
                let words = format!("node {number} ends with {mine} of {end:?}");
                return Err((Fault::NotUniform, words));
            }
            let whole = going().map(|(_, other)| other);
            for other in whole {
                let from = node.began.max(other.began);
                let after = |node: &Node| {
                    let log = node.log.iter().filter(|(number, ..)| *number > from);
                    log.cloned().collect::<Vec<_>>()
                };
                if after(node) != after(other) {
                    let words = format!("node {number} has delivered something else");
                    return Err((Fault::NotUniform, words));
                }
            }
            let me = NodeId::at(number);
            let own = node.log.iter().filter(|(_, from, _)| *from == me);
            let own = own.map(|(_, _, text)| text);
            if let Some(text) = node
                .sent
                .iter()
                .find(|text| !own.clone().any(|o| o == *text))
            {
                let words = String::from_utf8_lossy(text).into_owned();
                return Err((Fault::Lost, format!("node {number}: {words}")));
            }
        }
        Ok(())
    }
}
