//! A sample sort: each node sorts a range of the values of all. It uses what MPI programs use for
//! it: an all-gather of samples, an all-to-all of values, and a scan of lengths.

use dhole::Config;

const NODES: usize = 4;
const EACH: usize = 50_000;
/// Of how many values a node tells the others one.
const SAMPLE: usize = 500;

/// Numbers in no order.
fn values(node: usize) -> Vec<u64> {
    let next = |value: &u64| Some(value.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(11));
    let all = std::iter::successors(Some(node as u64 + 1), next);
    all.skip(1).take(EACH).collect()
}

fn main() -> Result<(), dhole::RunError> {
    let run = Config::nodes(NODES).run(|w| {
        let (me, nodes) = (w.node().index(), w.nodes());
        let sorted = w.once(|w| Ok(w.alloc_array::<u64>(NODES * EACH)))?;
        let mut mine = values(me);
        mine.sort_unstable();
        // The ends of the nodes' ranges, from samples of all values.
        let sample: Vec<u64> = mine.iter().copied().step_by(SAMPLE).collect();
        let mut samples = w.all_gather(sample)?.concat();
        samples.sort_unstable();
        let end_of = |node: usize| samples.get(samples.len() * (node + 1) / nodes).copied();
        // Each node gets the values of its range from each.
        let mut rest = &mine[..];
        let mut for_node = Vec::with_capacity(nodes);
        for node in 0..nodes {
            let count = end_of(node).map_or(rest.len(), |end| rest.partition_point(|it| *it < end));
            let (its, beyond) = rest.split_at(count);
            for_node.push(its.to_vec());
            rest = beyond;
        }
        let mut mine = w.all_to_all(for_node)?.concat();
        mine.sort_unstable();
        // The values before mine are those of the nodes before me.
        let begins = w.exclusive_scan(mine.len(), |one, next| one + next)?;
        let begins = begins.unwrap_or(0);
        let place = sorted.slice_mut(w, begins..begins + mine.len());
        place.copy_from_slice(&mine);
        w.barrier()?;
        Ok(sorted.slice(w, ..).to_vec())
    })?;
    if run.report.is_first() {
        let mut alone: Vec<u64> = (0..NODES).flat_map(values).collect();
        alone.sort_unstable();
        assert_eq!(run.value, alone);
        let middle = alone[alone.len() / 2];
        println!(
            "{} values are sorted; the middle one is {middle}",
            alone.len()
        );
    }
    Ok(())
}
