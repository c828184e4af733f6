//! Beginning and ending a run together: everybody tells node 0 what it brings, and node 0 tells
//! everybody what comes of it.

use std::sync::atomic::Ordering;

use dhole_heap::decode_whole;
use dhole_model::NodeId;
use dhole_node::{Judge, LostNode, Receivers, StartError, Verdict};

use super::frame::{Frame, Kind};
use super::{Processes, lock};

/// What a process says of a run that is to begin: what it brings, or why it cannot run.
type Said = Result<Vec<u8>, String>;

/// What has been said about the beginning and the end of runs.
pub(super) struct Table {
    /// Of each node, the last run that it began, and what it brought.
    hellos: Vec<Option<(u32, Said)>>,
    /// What node 0 said last.
    welcome: Option<(u32, Said)>,
    /// What the nodes bring from the run.
    ends: Vec<Option<Vec<u8>>>,
    /// And who says so.
    verdict: Option<(NodeId, Vec<u8>)>,
    byes: Vec<bool>,
    lost: Vec<Option<LostNode>>,
    /// The worker here has come to the end of its run, or has begun none.
    parting: bool,
}

impl Table {
    pub fn new(nodes: usize) -> Table {
        Table {
            hellos: vec![None; nodes],
            welcome: None,
            ends: vec![None; nodes],
            verdict: None,
            byes: vec![false; nodes],
            lost: vec![None; nodes],
            parting: true,
        }
    }

    /// A run begins.
    pub fn clear(&mut self) {
        self.ends.fill(None);
        self.byes.fill(false);
        self.verdict = None;
        self.parting = false;
    }

    /// Notes that a node is lost; whether that is new.
    pub fn lose(&mut self, node: NodeId, how: &str) -> bool {
        let lost = &mut self.lost[node.index()];
        let is_new = lost.is_none();
        lost.get_or_insert_with(|| LostNode {
            node,
            how: how.to_owned(),
        });
        is_new
    }

    /// The nodes that are lost.
    pub fn lost(&self) -> impl Iterator<Item = &LostNode> {
        self.lost.iter().flatten()
    }

    /// Whether the worker here has come to the end of its run.
    pub fn is_parting(&self) -> bool {
        self.parting
    }

    /// Takes what a process says in run `run`; why no sound process says it.
    pub fn put(
        &mut self,
        me: NodeId,
        from: NodeId,
        (run, survives): (u32, bool),
        frame: Frame<'_>,
    ) -> Result<(), String> {
        let (kind, its) = (frame.header.kind, frame.header.run);
        let of_zero = matches!(kind, Kind::Welcome | Kind::Verdict);
        // At the end, another node may have taken the place of node 0.
        let begins = matches!(kind, Kind::Hello | Kind::Welcome) || !survives;
        if begins && (of_zero && from.index() != 0 || !of_zero && me.index() != 0) {
            return Err(format!("a {kind:?}, which is not its to send"));
        }
        let said = || {
            decode_whole::<Said>(frame.message)
                .map_err(|cause| format!("a malformed {kind:?}: {cause}"))
        };
        match kind {
            Kind::Hello => self.hellos[from.index()] = Some((its, said()?)),
            Kind::Welcome => self.welcome = Some((its, said()?)),
            _ if its != run => {}
            Kind::End => self.ends[from.index()] = Some(frame.message.to_vec()),
            Kind::Verdict => self.verdict = Some((from, frame.message.to_vec())),
            Kind::Bye => self.byes[from.index()] = true,
            Kind::Message | Kind::Payload | Kind::Part => {}
        }
        Ok(())
    }

    /// What the first one that was lost of these leaves to say.
    fn first_lost(&self, of: impl Fn(NodeId) -> bool) -> Option<LostNode> {
        let mut lost = self.lost();
        lost.find(|lost| of(lost.node)).cloned()
    }

    /// Whether every node but this one is lost or there already.
    fn all(&self, me: NodeId, there: impl Fn(usize) -> bool) -> bool {
        let mut others = (0..self.lost.len()).filter(|node| *node != me.index());
        others.all(|node| self.lost[node].is_some() || there(node))
    }
}

fn encode(said: &Said) -> Vec<u8> {
    postcard::to_allocvec(said).expect("plain values have a form in bytes")
}

/// Why a run does not begin, for a node that says itself that none does.
fn why(refused: StartError) -> String {
    match refused {
        StartError::Lost { lost, .. } => lost.to_string(),
        StartError::Apart { why, .. } => why,
        StartError::Refused { .. } => refused.to_string(),
    }
}

impl Processes {
    pub(super) fn begin_together(
        &self,
        brings: Said,
        judge: &Judge<'_>,
    ) -> Result<Vec<u8>, StartError> {
        let nodes = self.nodes;
        let run = self.run.fetch_add(1, Ordering::AcqRel) + 1;
        lock(&self.table).clear();
        let said = match self.me.index() {
            0 => {
                let said = self.hear_all(run, brings, judge);
                let welcome = encode(&said.clone().map_err(why));
                for node in self.others() {
                    self.tell(&[], node, Kind::Welcome, &welcome);
                }
                return said;
            }
            _ => {
                self.tell(&[], NodeId(0), Kind::Hello, &encode(&brings));
                let lost = || lock(&self.table).lost[0].clone();
                let there = || {
                    let table = lock(&self.table);
                    table.welcome.as_ref().is_some_and(|(its, _)| *its >= run)
                };
                self.serve_until(&[], None, &|| there() || lost().is_some());
                let welcome = lock(&self.table).welcome.clone();
                match welcome {
                    Some((its, said)) if its == run => said,
                    Some((its, _)) => Err(format!("this is run {run}, and node 0 is in {its}")),
                    None => match lost() {
                        Some(lost) => return Err(StartError::Lost { nodes, lost }),
                        None => Err("node 0 says nothing".into()),
                    },
                }
            }
        };
        said.map_err(|why| StartError::Apart { nodes, why })
    }

    /// Node 0 waits for the others, and judges what they bring.
    fn hear_all(&self, run: u32, brings: Said, judge: &Judge<'_>) -> Result<Vec<u8>, StartError> {
        let nodes = self.nodes;
        let refuse = |why| StartError::Apart { nodes, why };
        let mut all = vec![brings.map_err(refuse)?];
        let lost = || lock(&self.table).first_lost(|_| true);
        let there = || {
            let table = lock(&self.table);
            let there =
                |hello: &Option<(u32, Said)>| matches!(hello, Some((its, _)) if *its >= run);
            table.hellos[1..].iter().all(there)
        };
        self.serve_until(&[], None, &|| there() || lost().is_some());
        if let Some(lost) = lost() {
            return Err(StartError::Lost { nodes, lost });
        }
        for node in 1..nodes {
            let hello = lock(&self.table).hellos[node].clone();
            match hello {
                Some((its, Ok(brings))) if its == run => all.push(brings),
                Some((its, Err(why))) if its == run => return Err(refuse(why)),
                Some((its, _)) => {
                    return Err(refuse(format!(
                        "node {node} is in run {its}, and node 0 in {run}"
                    )));
                }
                None => return Err(refuse(format!("node {node} says nothing"))),
            }
        }
        judge(&all).map_err(refuse)
    }

    pub(super) fn end_together(
        &self,
        receivers: &Receivers<'_>,
        brings: Vec<u8>,
        without: &[LostNode],
        judge: &Verdict<'_>,
    ) -> Result<Vec<u8>, LostNode> {
        self.stay_away();
        for LostNode { node, how } in without {
            lock(&self.table).lose(*node, how);
        }
        loop {
            let judging = lock(&self.table).judging(self.survives());
            if judging == self.me {
                return Ok(self.judge_all(receivers, brings, judge));
            }
            self.tell(receivers, judging, Kind::End, &brings);
            let over = || {
                let table = lock(&self.table);
                table.verdict.is_some() || table.lost[judging.index()].is_some()
            };
            self.serve_until(receivers, None, &over);
            let verdict = lock(&self.table).verdict.take();
            if let Some((from, verdict)) = verdict {
                self.tell(receivers, from, Kind::Bye, &[]);
                return Ok(verdict);
            }
            if !self.survives() {
                let lost = lock(&self.table).lost[judging.index()].clone();
                return Err(lost.unwrap_or(LostNode {
                    node: judging,
                    how: "it said nothing".into(),
                }));
            }
        }
    }

    /// The worker here has come to the end of its run.
    pub(super) fn stay_away(&self) {
        lock(&self.table).parting = true;
    }

    fn judge_all(
        &self,
        receivers: &Receivers<'_>,
        brings: Vec<u8>,
        judge: &Verdict<'_>,
    ) -> Vec<u8> {
        let ended = || lock(&self.table).all_ended(self.me);
        self.serve_until(receivers, None, &ended);
        let mut brings = Some(brings);
        let mut ends = Vec::with_capacity(self.nodes);
        {
            let mut table = lock(&self.table);
            for node in 0..self.nodes {
                let own = brings.take_if(|_| node == self.me.index());
                let lost = table.lost[node].clone();
                let brought = own.or_else(|| table.ends[node].take());
                ends.push(brought.ok_or(lost.unwrap_or(LostNode {
                    node: NodeId::at(node),
                    how: "it said nothing".into(),
                })));
            }
        }
        let verdict = judge(ends);
        for node in self.others() {
            self.tell(receivers, node, Kind::Verdict, &verdict);
        }
        // A process that ends with something unread breaks its connections, and what was sent
        // before may be gone: so this one stays until all have heard it.
        let heard = || lock(&self.table).all_heard(self.me);
        self.serve_until(receivers, None, &heard);
        verdict
    }
}

impl Table {
    fn all_ended(&self, me: NodeId) -> bool {
        self.all(me, |node| self.ends[node].is_some())
    }

    fn all_heard(&self, me: NodeId) -> bool {
        self.all(me, |node| self.byes[node])
    }

    /// Who says how the run has ended: node 0, or the first that is left where others may.
    fn judging(&self, survives: bool) -> NodeId {
        let left = self.lost.iter().position(Option::is_none);
        NodeId::at(left.filter(|_| survives).unwrap_or(0))
    }

    /// What node `me` waits for at the beginning or the end of run `run`, and who is lost.
    pub fn describe(&self, me: NodeId, run: u32, survives: bool) -> String {
        let missing = |there: &dyn Fn(usize) -> bool| {
            let nodes = (0..self.lost.len()).filter(|node| *node != me.index());
            let nodes = nodes.filter(|node| self.lost[*node].is_none());
            let nodes = nodes.filter(|node| !there(*node));
            let names: Vec<String> = nodes.map(|node| NodeId::at(node).to_string()).collect();
            names.join(", ")
        };
        let begins = |said: &Option<(u32, Said)>| said.as_ref().is_some_and(|(its, _)| *its >= run);
        let judging = self.judging(survives);
        let waits = match self.parting {
            false if me == NodeId(0) => ("begins", missing(&|node| begins(&self.hellos[node]))),
            false => ("begins", NodeId(0).to_string()),
            true if me != judging => ("ends", judging.to_string()),
            true if !self.all_ended(me) => ("ends", missing(&|node| self.ends[node].is_some())),
            true => ("ends", missing(&|node| self.byes[node])),
        };
        let (what, whom) = waits;
        let lost: Vec<String> = self.lost().map(|lost| format!("; {lost}")).collect();
        format!("run {run} {what}, and waits for {whom}{}", lost.concat())
    }
}
