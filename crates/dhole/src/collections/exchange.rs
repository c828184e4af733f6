//! Values that each node has for each other, however many.

use dhole_node::{CollectiveError, Worker};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The most values that one node has for another in a round. So a round carries values of 256 bytes
/// on average.
const MOST_IN_A_ROUND: usize = 1 << 18;

/// Gives each node the values that are for it, in the order of the nodes that had them. Every node
/// calls it. It takes as many rounds as the node that has most values for another, each of n(n-1)
/// messages.
#[track_caller]
pub(super) fn exchange<T>(
    w: &mut Worker<'_>,
    per_node: Vec<Vec<T>>,
) -> Result<Vec<Vec<T>>, CollectiveError>
where
    T: Serialize + DeserializeOwned,
{
    in_rounds(w, per_node, MOST_IN_A_ROUND)
}

#[track_caller]
fn in_rounds<T>(
    w: &mut Worker<'_>,
    per_node: Vec<Vec<T>>,
    most: usize,
) -> Result<Vec<Vec<T>>, CollectiveError>
where
    T: Serialize + DeserializeOwned,
{
    let mut left = per_node;
    let mut all: Vec<Vec<T>> = left.iter().map(|_| Vec::new()).collect();
    loop {
        let goes_on = left.iter().any(|values| values.len() > most);
        let round = left.iter_mut().map(|values| {
            let behind = values.split_off(values.len().min(most));
            (std::mem::replace(values, behind), goes_on)
        });
        let came = w.all_to_all(round.collect())?;
        let is_last = came.iter().all(|(_, goes_on)| !goes_on);
        for (all, (values, _)) in all.iter_mut().zip(came) {
            match all.is_empty() {
                true => *all = values,
                false => all.extend(values),
            }
        }
        if is_last {
            return Ok(all);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn values_arrive_in_their_order_in_as_many_rounds_as_the_longest_takes() {
        for (most, rounds) in [(1, 7), (3, 3), (100, 1)] {
            let run = Config::nodes(3).run(|w| {
                let (me, nodes) = (w.node().index(), w.nodes());
                let values = |from: usize, to: usize| match (from, to) {
                    (1, 2) => (0..7).collect(),
                    _ => vec![10 * from + to; from],
                };
                let per_node = (0..nodes).map(|to| values(me, to)).collect();
                let came = in_rounds(w, per_node, most)?;
                let expected: Vec<_> = (0..nodes).map(|from| values(from, me)).collect();
                assert_eq!(came, expected);
                Ok(())
            });
            let total = run.expect("it runs").report.total();
            assert_eq!(total.sent(crate::MessageKind::Collective), rounds * 6);
        }
    }
}
