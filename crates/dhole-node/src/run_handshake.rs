//! A run over several processes: how it is begun, and what all take with them from it.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use dhole_heap::{Cluster, decode_whole};
use dhole_model::{NodeId, Placement, Timeline};
use dhole_net::PayloadPool;
use dhole_protocol::Waiter;
use serde::{Deserialize, Serialize};

use crate::domain;
use crate::error::{ConfigError, Error, RunError};
use crate::failure::{Failed, Failure};
use crate::machine::{LostNode, Multiprocess, Receivers, StartError};
use crate::node::Node;
use crate::outcome::{End, Outcome};
use crate::parts::NodeParts;
use crate::settings::Settings;
use crate::sync_error::SyncError;

/// What a process brings to a run.
#[derive(Serialize, Deserialize)]
struct Terms {
    /// What the nodes have to agree on, each setting in words.
    settings: Vec<String>,
    /// The names of what can be shipped.
    shipped: u64,
    ids_left: Range<u64>,
    /// The nodes of its domain, in their order.
    domain: Vec<NodeId>,
    /// What is in the way of its parts, in each place of several.
    places: Vec<String>,
}

/// What a process has found before it meets the others.
pub(crate) struct Brings {
    /// What it was refused, which all hear.
    refused: Option<StartError>,
    /// The nodes of its domain, in their order.
    domain: Vec<NodeId>,
    places: Vec<String>,
}

/// What a process does with the leaders of domains and the number of its parts' place.
type Settles<'a> = dyn FnMut(&[NodeId], usize) -> Result<(), StartError> + 'a;

impl Brings {
    /// Of its node's parts, in a domain of these nodes.
    pub fn of(
        all_parts: &Result<Vec<Option<Box<dyn NodeParts>>>, StartError>,
        domain: Vec<NodeId>,
    ) -> Brings {
        let own = all_parts.iter().flatten().flatten();
        Brings {
            refused: all_parts.as_ref().err().cloned(),
            domain,
            places: own.flat_map(|parts| parts.places().to_vec()).collect(),
        }
    }
}

impl Settings {
    fn check_multiprocess(&self, multiprocess: &dyn Multiprocess) -> Result<(), RunError> {
        if self.placement() == Placement::Everywhere {
            let what = match self.placement {
                Placement::Everywhere => "placement everywhere",
                Placement::FirstTouch => "treadmarks",
            };
            return Err(ConfigError::ProcessesPlaceByTouch { what }.into());
        }
        match self.nodes == multiprocess.nodes() {
            true => Ok(()),
            false => Err(RunError::Start(StartError::Apart {
                nodes: multiprocess.nodes(),
                why: format!("a run of {} nodes was asked for", self.nodes),
            })),
        }
    }
}

/// This process's part of a cluster, of which all processes have agreed what ids its objects have.
/// With it come the leaders of the nodes' domains. `settles` takes those and the number of the
/// parts' place.
pub(crate) fn meet(
    multiprocess: &dyn Multiprocess,
    settings: &Settings,
    pool: &Arc<PayloadPool>,
    brings: Brings,
    settles: &mut Settles<'_>,
) -> Result<(Arc<Cluster>, Vec<NodeId>), RunError> {
    let nodes = settings.nodes;
    let Brings {
        refused,
        domain,
        places,
    } = brings;
    multiprocess.begins(settings.survive);
    // What cannot be is told to the others, who would wait.
    let checked = settings.check().map_err(RunError::from);
    let checked = checked.and_then(|_| settings.check_multiprocess(multiprocess));
    let checked = checked.and_then(|()| refused.map_or(Ok(()), |refused| Err(refused.into())));
    let made = checked.and_then(|()| {
        let made = Cluster::part(nodes, multiprocess.me(), settings.detector);
        made.map_err(|cause| RunError::Reserve { nodes, cause })
    });
    let terms = match &made {
        Ok(cluster) => Ok(encode(&Terms {
            settings: settings.in_words(),
            shipped: dhole_registry::fingerprint(),
            ids_left: cluster.ids_left(),
            domain,
            places,
        })),
        Err(error) => {
            let words = error.to_string();
            multiprocess.failed(&words);
            Err(words)
        }
    };
    let agreed = multiprocess.meet(terms, &|all| agree(all, multiprocess.stamp()));
    // What went wrong here comes before what the others make of it.
    let cluster = made?;
    let agreed: (_, _, Vec<NodeId>, usize) =
        decode_whole(&agreed?).map_err(|cause| StartError::Apart {
            nodes,
            why: format!("what node 0 says of the run is malformed: {cause}"),
        })?;
    let (window, stamp, leaders, place) = agreed;
    let reserved = cluster.settle(window, stamp);
    let reserved = reserved.map_err(|cause| RunError::Reserve { nodes, cause });
    match reserved.and_then(|()| Ok(settles(&leaders, place)?)) {
        Ok(()) => {
            multiprocess.open(&cluster, pool, settings.survive);
            Ok((cluster, leaders))
        }
        Err(cause) => {
            let words: Arc<str> = cause.to_string().into();
            multiprocess.failed(&words);
            multiprocess.abandon(&words);
            let failed = Failed::Error(Box::new(Error::Elsewhere(words)));
            let order = Some(0);
            let failure = Err(Failure { failed, order });
            let _all_fail = end(
                multiprocess,
                &[],
                failure,
                Vec::new(),
                None,
                &mut Vec::new(),
            );
            Err(cause)
        }
    }
}

/// The ids that a run has, if all bring the same settings.
fn agree(all: &[Vec<u8>], stamp: u64) -> Result<Vec<u8>, String> {
    let mut wanted: Option<Terms> = None;
    let (mut domains, mut places) = (Vec::new(), Vec::new());
    for (node, brought) in all.iter().enumerate() {
        let node = NodeId::at(node);
        let mut terms: Terms = decode_whole(brought)
            .map_err(|cause| format!("what {node} brings to the run is malformed: {cause}"))?;
        domains.push(std::mem::take(&mut terms.domain));
        places.push(std::mem::take(&mut terms.places));
        let Some(wanted) = &mut wanted else {
            wanted = Some(terms);
            continue;
        };
        if terms.shipped != wanted.shipped {
            return Err(format!("{node} runs another program than node 0"));
        }
        if terms.settings != wanted.settings {
            let both = terms.settings.iter().zip(&wanted.settings);
            let (theirs, ours): (Vec<&str>, Vec<&str>) = both
                .filter(|(theirs, ours)| theirs != ours)
                .map(|(theirs, ours)| (theirs.as_str(), ours.as_str()))
                .unzip();
            let (theirs, ours) = (theirs.join(", "), ours.join(", "));
            return Err(format!(
                "{node} has the settings {theirs}, and node 0 has {ours}"
            ));
        }
        let (theirs, ours) = (terms.ids_left, &mut wanted.ids_left);
        *ours = ours.start.max(theirs.start)..ours.end.min(theirs.end);
    }
    let left = wanted.map_or(0..0, |terms| terms.ids_left);
    let leaders = domain::agree(&domains)?;
    let place = place_of_all(&places)?;
    Ok(encode(&(Cluster::window_of(left), stamp, leaders, place)))
}

/// The first place in which nothing is in the way of any node.
fn place_of_all(places: &[Vec<String>]) -> Result<usize, String> {
    let tried = places.iter().map(Vec::len).max().unwrap_or(0);
    if places.iter().any(|own| own.len() != tried) {
        return Err("the nodes have tried different places for raw memory".to_owned());
    }
    let is_free = |place: &usize| places.iter().all(|own| own[*place].is_empty());
    let mut all = 0..tried;
    if let Some(place) = all.find(is_free) {
        return Ok(place);
    }
    if tried == 0 {
        return Ok(0);
    }
    let mut taken = Vec::new();
    for place in 0..tried {
        for (node, own) in places.iter().enumerate() {
            if !own[place].is_empty() {
                taken.push(format!("{}: {}", NodeId::at(node), own[place]));
            }
        }
    }
    let taken = taken.join("; ");
    Err(format!(
        "raw memory has no place that is free on all nodes: {taken}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(each: &[&[&str]]) -> Vec<Vec<String>> {
        let own = |own: &&[&str]| own.iter().map(|it| (*it).to_owned()).collect();
        each.iter().map(own).collect()
    }

    #[test]
    fn nodes_take_the_first_place_that_all_can_have_or_hear_what_is_in_the_way() {
        assert_eq!(place_of_all(&words(&[&[], &[]])), Ok(0));
        assert_eq!(place_of_all(&words(&[&["", ""], &["", ""]])), Ok(0));
        assert_eq!(
            place_of_all(&words(&[&["", "", ""], &["a", "b", ""]])),
            Ok(2)
        );
        let refused = place_of_all(&words(&[&["", "a"], &["b", ""]])).unwrap_err();
        assert_eq!(
            refused,
            "raw memory has no place that is free on all nodes: node 1: b; node 0: a"
        );
        assert!(place_of_all(&words(&[&[""], &[]])).is_err());
    }
}

/// What a node brings from a run.
#[derive(Serialize, Deserialize)]
struct EndReport {
    end: End,
    failure: Option<FailureReport>,
}

/// A failure, as other processes hear of it.
#[derive(Clone, Serialize, Deserialize)]
struct FailureReport {
    panicked: bool,
    words: Arc<str>,
    cycle: Option<Arc<[Waiter]>>,
    /// When the node failed; none for what follows from another's failure.
    at_ns: Option<u64>,
}

/// What all take with them.
#[derive(Serialize, Deserialize)]
struct Verdict {
    lost: Vec<LostNode>,
    /// The first failure first.
    failures: Vec<(NodeId, FailureReport)>,
}

impl FailureReport {
    fn of(failure: &Failure, clock_ns: u64) -> FailureReport {
        let at_ns = failure.order.map(|_| clock_ns);
        let (panicked, words, cycle) = match &failure.failed {
            Failed::Panicked(words) => (true, Arc::clone(words), None),
            Failed::Error(error) => {
                let cycle = error.cycle().cloned();
                (false, error.to_string().into(), cycle)
            }
        };
        FailureReport {
            panicked,
            words,
            cycle,
            at_ns,
        }
    }

    fn into_failed(self, node: NodeId) -> Failed {
        match (self.panicked, self.cycle) {
            (true, _) => Failed::Panicked(self.words),
            (false, Some(cycle)) => {
                Failed::Error(Box::new(SyncError::Deadlock { node, cycle }.into()))
            }
            (false, None) => Failed::Error(Box::new(Error::Elsewhere(self.words))),
        }
    }
}

/// Ends a run. Node 0's outcome is whole; the others know of their own nodes only. If any node has
/// failed, all have.
pub(crate) fn part(
    multiprocess: &dyn Multiprocess,
    node: &Node,
    receivers: &Receivers<'_>,
    result: Result<NodeId, Failure>,
    own: Vec<End>,
    timelines: &mut Vec<Option<Timeline>>,
) -> Result<Outcome<NodeId>, RunError> {
    match result {
        Err(failure) if node.is_out() => {
            multiprocess.withdraw();
            Err(failure.failed.into_run_error(node.id, Vec::new()))
        }
        result => {
            let lost = node.survives.then(|| node.lost());
            let outcome = end(multiprocess, receivers, result, own, lost, timelines)?;
            multiprocess.ends();
            Ok(outcome)
        }
    }
}

/// As [`part`], without the nodes that are lost, if the run survives that.
fn end(
    multiprocess: &dyn Multiprocess,
    receivers: &Receivers<'_>,
    result: Result<NodeId, Failure>,
    mut own: Vec<End>,
    without: Option<Vec<LostNode>>,
    timelines: &mut Vec<Option<Timeline>>,
) -> Result<Outcome<NodeId>, RunError> {
    let (me, nodes) = (multiprocess.me(), multiprocess.nodes());
    let end = own.pop().unwrap_or_default();
    let failure = result.as_ref().err();
    let brings = encode(&EndReport {
        end: end.clone(),
        failure: failure.map(|failure| FailureReport::of(failure, end.clock_ns)),
    });
    let mut ends = vec![End::default(); nodes];
    ends[me.index()] = end;
    let ends = RefCell::new(ends);
    let gone = without.as_deref().unwrap_or_default();
    let judged = multiprocess.part(receivers, brings, gone, &|all| {
        judge(all, &mut ends.borrow_mut())
    });
    let mut ends = ends.into_inner();
    timelines.extend(ends.iter_mut().map(|end| end.timeline.take()));
    let verdict = match judged {
        Ok(verdict) => decode_whole(&verdict).unwrap_or_else(|cause| Verdict {
            lost: vec![LostNode {
                node: NodeId(0),
                how: format!("what it says of the run's end is malformed: {cause}"),
            }],
            failures: Vec::new(),
        }),
        Err(lost) => Verdict {
            lost: vec![lost],
            failures: Vec::new(),
        },
    };
    let Verdict { mut lost, failures } = verdict;
    // Whoever was lost on the way here has met all others at the end of the program.
    let survived = without.map(|mut gone| {
        let known = |lost: &LostNode| gone.iter().any(|gone| gone.node == lost.node);
        let late: Vec<LostNode> = lost.drain(..).filter(|lost| !known(lost)).collect();
        gone.extend(late);
        gone
    });
    let (value, own) = match result {
        Ok(value) => (Some(value), None),
        Err(failure) => (None, Some(failure)),
    };
    let mut own = own.map(|failure| failure.failed);
    let mut failures = failures.into_iter().map(|(node, told)| {
        let follows = told.at_ns.is_none();
        let failed = match node == me {
            true => own.take().unwrap_or_else(|| told.into_failed(node)),
            false => told.into_failed(node),
        };
        (node, failed, follows)
    });
    let first = match lost.into_iter().next() {
        Some(lost) => Err(lost),
        None => match failures.next() {
            Some((node, failed, _)) => Ok((node, failed)),
            None => {
                let value = value.ok_or_else(|| {
                    let how = "it does not know of a failure here".into();
                    let (lost, others) = (
                        LostNode {
                            node: NodeId(0),
                            how,
                        },
                        Vec::new(),
                    );
                    RunError::Lost { lost, others }
                })?;
                drop(failures);
                let survived = survived.unwrap_or_default();
                return Ok(Outcome::of(value, ends, survived, false));
            }
        },
    };
    let others = failures
        .filter(|(.., follows)| !follows)
        .map(|(node, failed, _)| (node, failed.into_error()))
        .collect();
    Err(match first {
        Err(lost) => RunError::Lost { lost, others },
        Ok((node, failed)) => failed.into_run_error(node, others),
    })
}

/// What all take with them; how each node ended goes to `ends`.
fn judge(all: Vec<Result<Vec<u8>, LostNode>>, ends: &mut [End]) -> Vec<u8> {
    let mut verdict = Verdict {
        lost: Vec::new(),
        failures: Vec::new(),
    };
    for (node, brought) in all.into_iter().enumerate() {
        let id = NodeId::at(node);
        let brought = brought.and_then(|bytes| {
            decode_whole::<EndReport>(&bytes).map_err(|cause| LostNode {
                node: id,
                how: format!("what it brings from the run is malformed: {cause}"),
            })
        });
        match brought {
            Err(lost) => verdict.lost.push(lost),
            Ok(EndReport { end, failure }) => {
                ends[node] = end;
                verdict
                    .failures
                    .extend(failure.map(|failure| (id, failure)));
            }
        }
    }
    let failed_at = |(_, told): &(NodeId, FailureReport)| told.at_ns.unwrap_or(u64::MAX);
    verdict.failures.sort_by_key(failed_at);
    encode(&verdict)
}

fn encode(told: &impl Serialize) -> Vec<u8> {
    postcard::to_allocvec(told).expect("plain values have a form in bytes")
}
