//! What the environment says of every process of a cluster, however it is started.

use std::ffi::OsString;
use std::time::Duration;

use dhole_model::NodeId;

use super::error::JoinError;
use super::{BuildId, Membership, Way};
use dhole_net::Waiting;
use dhole_net::variables::{
    LEAST_BOUND_MS, LONGEST_BOUND_MS, LONGEST_JOIN_MS, Look, MOST_LEARNT_RUNS, MOST_MESSAGE_MIB,
    RUN, number, text, waiting,
};

/// How long joining may take unless the environment says it: a batch system may take its time to
/// start the last process.
const JOIN_MS: u64 = 30_000;
/// How long a node may be silent, unless the environment says it.
const BOUND_MS: u64 = 5_000;

/// The setting under which the arguments of the nodes' programs are compared.
const ARGUMENTS: &str = "program arguments";

/// What goes for every process of a cluster, however they come together.
pub(super) fn member(
    look: Look<'_>,
    words: impl Iterator<Item = OsString>,
    node: NodeId,
    nodes: usize,
    way: Way,
) -> Result<Membership, JoinError> {
    waiting(look, Waiting::default())?;
    let within = number(look, "DHOLE_JOIN_MS", 1, LONGEST_JOIN_MS)?.unwrap_or(JOIN_MS);
    let bound =
        number(look, "DHOLE_BOUND_MS", LEAST_BOUND_MS, LONGEST_BOUND_MS)?.unwrap_or(BOUND_MS);
    let message = number(look, "DHOLE_MESSAGE_MIB", 1, MOST_MESSAGE_MIB)?;
    let learnt = number(look, "DHOLE_LEARNT_RUNS", 1, MOST_LEARNT_RUNS)?;
    let said = |limit: Option<u64>| limit.map_or("unset".to_owned(), |limit| limit.to_string());
    let build = BuildId::of_this_process().map_err(|cause| JoinError::System {
        me: node,
        doing: "reading its own executable",
        cause,
    })?;
    let run = text(look, RUN)?.unwrap_or_default();
    let membership = Membership {
        node,
        nodes,
        way,
        within: Duration::from_millis(within),
        bound: Duration::from_millis(bound),
        build,
        settings: Vec::new(),
        longest_message: message.map(|mib| (mib as usize) << 20),
        learnt_runs: learnt.map(|runs| runs as usize),
    };
    Ok(membership
        .setting(RUN, &run)
        .setting("DHOLE_BOUND_MS", &bound.to_string())
        .setting("DHOLE_MESSAGE_MIB", &said(message))
        .setting("DHOLE_LEARNT_RUNS", &said(learnt))
        .setting(ARGUMENTS, &arguments(words)))
}

/// The arguments as one text by which they can be compared and, if they are short, read.
fn arguments(words: impl Iterator<Item = OsString>) -> String {
    const MOST_SHOWN_BYTES: usize = 80;
    let mut digest = ring::digest::Context::new(&ring::digest::SHA256);
    let mut shown = String::new();
    for word in words {
        // Each word's length goes before it, so that no two lists of words read alike.
        digest.update(&(word.len() as u64).to_le_bytes());
        digest.update(word.as_encoded_bytes());
        if shown.len() < MOST_SHOWN_BYTES {
            let space = if shown.is_empty() { "" } else { " " };
            shown += space;
            shown += &word.to_string_lossy();
        }
    }
    let cut = shown.floor_char_boundary(MOST_SHOWN_BYTES);
    if cut < shown.len() {
        shown.truncate(cut);
        shown += "..";
    }
    let digest = digest.finish();
    let digest = digest.as_ref()[..8].iter();
    let digest: String = digest.map(|byte| format!("{byte:02x}")).collect();
    format!("{shown} (digest {digest})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_that_differ_in_anything_read_differently() {
        let text = |words: &[&str]| arguments(words.iter().map(OsString::from));
        let long = ["--rows".to_owned() + &"9".repeat(200), "1".into()];
        let longer = [long[0].clone(), "2".into()];
        let [long, longer] = [long, longer].map(|l| text(&[&l[0], &l[1]]));
        let all = [
            text(&[]),
            text(&["a b"]),
            text(&["a", "b"]),
            text(&[""]),
            long,
            longer,
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(one.len() <= 200, "{one}");
            assert!(!all[..at].contains(one), "{all:?}");
        }
        assert!(text(&["--rows", "8"]).starts_with("--rows 8 (digest "));
    }
}
