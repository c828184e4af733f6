//! Which of the paper's statements hold here.

use std::fmt::Write as _;

use super::runs::{CHUNKINGS, CHUNKS, MOST, Run, Runs, Variant};

/// A statement, whether it holds, and the numbers that say so.
struct Claim {
    stated: &'static str,
    holds: bool,
    because: String,
}

/// The table of all statements.
pub fn table(runs: &Runs<'_>, costs: &[Option<f64>]) -> String {
    let mut page = String::from("## What holds\n\n| statement | holds | here |\n|---|---|---|\n");
    for claim in claims(runs, costs) {
        let holds = if claim.holds { "yes" } else { "no" };
        let _ = writeln!(page, "| {} | {holds} | {} |", claim.stated, claim.because);
    }
    page.push('\n');
    page
}

fn claims(runs: &Runs<'_>, costs: &[Option<f64>]) -> Vec<Claim> {
    let mut claims = vec![costs_of_operations(runs, costs), views(runs), bytes(runs)];
    let speedup = |name, variant| {
        let run = runs.of(name, MOST, variant);
        run.map_or(f64::NAN, Run::speedup)
    };
    let linear = ["SOR", "IS"].map(|name| speedup(name, Variant::Millipage));
    let polling = ["SOR", "IS"].map(|name| speedup(name, Variant::Polling));
    claims.push(Claim {
        stated: "SOR and IS are \"close to linear\": at least 7.0 of 8",
        holds: linear.iter().all(|speedup| *speedup >= 7.0),
        because: format!(
            "{:.2} and {:.2}; polling {:.2} and {:.2}",
            linear[0], linear[1], polling[0], polling[1]
        ),
    });
    let prefetch = [Variant::NoPrefetch, Variant::Millipage].map(|it| speedup("LU", it));
    claims.push(Claim {
        stated: "prefetch hides the delay of service from LU",
        holds: prefetch[0] < prefetch[1],
        because: format!("{:.2} without, {:.2} with", prefetch[0], prefetch[1]),
    });
    claims.push(shares(runs));
    claims.push(optimum(runs, 4, 3..=5));
    claims.push(optimum(runs, MOST, 4..=6));
    claims.push(competing(runs, Variant::Chunk, Variant::Page));
    claims.push(competing(runs, Variant::ChunkPolling, Variant::PagePolling));
    claims.push(faults_fall(runs));
    let best = [Variant::Chunk as fn(u32) -> Variant, Variant::ChunkPolling];
    let best = best.map(|chunk| best_chunk(runs, MOST, chunk));
    claims.push(Claim {
        stated: "the optimal chunk falls, or stays, if nodes that compute take messages at once",
        holds: best[1] <= best[0] && best[0].is_some(),
        because: format!("from {} to {}", chunk(best[0]), chunk(best[1])),
    });
    claims.push(adaptive(runs));
    claims.extend(units(runs));
    claims
}

fn costs_of_operations(runs: &Runs<'_>, costs: &[Option<f64>]) -> Claim {
    let ratios = runs.paper.cost.iter().zip(costs).map(|(cost, ours)| {
        let paper: f64 = cost.paper.parse().unwrap_or(f64::NAN);
        ours.unwrap_or(f64::NAN) / paper
    });
    let ratios: Vec<f64> = ratios.collect();
    let [least, most] = [
        ratios.iter().copied().fold(f64::INFINITY, f64::min),
        ratios.iter().copied().fold(0.0, f64::max),
    ];
    Claim {
        stated: "operations cost what Table 1 and section 4.2 say, within 15%",
        holds: ratios.iter().all(|ratio| (0.85..=1.15).contains(ratio)),
        because: format!("{least:.2} to {most:.2} of the paper's"),
    }
}

fn views(runs: &Runs<'_>) -> Claim {
    let found = runs.paper.program.iter().filter_map(|program| {
        let run = runs.of(&program.name, MOST, Variant::Millipage)?;
        Some((program, run.result("views")?))
    });
    let found: Vec<_> = found.collect();
    // Water's are remarked.
    let right = found.iter().filter(|(program, _)| program.name != "WATER");
    Claim {
        stated: "views, but for WATER's: 16, 8, 1 and 27",
        holds: found.len() == 5 && { right }.all(|(program, views)| program.views == *views),
        because: found
            .iter()
            .map(|(program, views)| format!("{} {views}", program.name))
            .collect::<Vec<_>>()
            .join(", "),
    }
}

fn bytes(runs: &Runs<'_>) -> Claim {
    let ratios = runs.paper.program.iter().filter_map(|program| {
        let run = runs.of(&program.name, MOST, Variant::Millipage)?;
        let bytes = run.result("minipage_bytes")? as f64;
        Some(bytes / program.shared_bytes as f64)
    });
    let ratios: Vec<f64> = ratios.collect();
    Claim {
        stated: "shared bytes, within 3%",
        holds: ratios.len() == 5 && ratios.iter().all(|ratio| (0.97..=1.03).contains(ratio)),
        because: ratios
            .iter()
            .map(|ratio| format!("{ratio:.3}"))
            .collect::<Vec<_>>()
            .join(", "),
    }
}

fn shares(runs: &Runs<'_>) -> Claim {
    let sums = runs.paper.program.iter().filter_map(|program| {
        let run = runs.of(&program.name, MOST, Variant::Millipage)?;
        let shares = run.shares();
        let serving = shares[shares.len() - 1];
        Some((program.name.as_str(), serving))
    });
    let sums: Vec<_> = sums.collect();
    // What is left after all that was counted is no less than nothing, but for rounding.
    Claim {
        stated: "what the time is spent on adds up: no more than all of it is counted",
        holds: sums.iter().all(|(_, left)| (-0.01..=1.0).contains(left)),
        because: sums
            .iter()
            .map(|(name, left)| format!("{name} {:.1}% left", left * 100.0))
            .collect::<Vec<_>>()
            .join(", "),
    }
}

/// The chunk with which WATER is fastest, of those that are no page.
fn best_chunk(runs: &Runs<'_>, nodes: u16, chunk: fn(u32) -> Variant) -> Option<u32> {
    let seconds = CHUNKS.iter().filter_map(|molecules| {
        let run = runs.of("WATER", nodes, chunk(*molecules))?;
        Some((run.seconds(), *molecules))
    });
    let best = seconds.min_by(|(one, _), (two, _)| one.total_cmp(two));
    best.map(|(_, molecules)| molecules)
}

fn chunk(found: Option<u32>) -> String {
    found.map_or_else(|| "?".to_owned(), |molecules| molecules.to_string())
}

fn optimum(runs: &Runs<'_>, nodes: u16, expected: std::ops::RangeInclusive<u32>) -> Claim {
    let found = best_chunk(runs, nodes, Variant::Chunk);
    Claim {
        stated: match nodes {
            4 => "WATER's optimal chunk on four hosts is 4 (3 to 5)",
            _ => "WATER's optimal chunk on eight hosts is 5 (4 to 6)",
        },
        holds: found.is_some_and(|found| expected.contains(&found)),
        because: chunk(found),
    }
}

fn of_chunks(
    runs: &Runs<'_>,
    chunk: fn(u32) -> Variant,
    page: Variant,
    count: fn(Run<'_>) -> u64,
) -> Vec<u64> {
    let variants = CHUNKS.map(chunk).into_iter().chain([page]);
    let found = variants.filter_map(|variant| runs.of("WATER", MOST, variant));
    found.map(count).collect()
}

fn listed(counts: &[u64]) -> String {
    let counts = counts.iter().map(u64::to_string);
    counts.collect::<Vec<_>>().join(", ")
}

fn competing(runs: &Runs<'_>, chunk: fn(u32) -> Variant, page: Variant) -> Claim {
    let found = of_chunks(runs, chunk, page, |run| run.counted("competing_requests"));
    let rises = found.len() == CHUNKS.len() + 1 && found.first() < found.last();
    Claim {
        stated: match page {
            Variant::Page => "competing requests rise from tens (21) to hundreds (601)",
            _ => "the same, polling",
        },
        holds: rises && found[0] < 100 && found[CHUNKS.len()] >= 100,
        because: listed(&found),
    }
}

fn faults_fall(runs: &Runs<'_>) -> Claim {
    let (chunk, page) = (Variant::Chunk, Variant::Page);
    let found = of_chunks(runs, chunk, page, |run| run.faults().iter().sum());
    let chunks = found.get(..CHUNKS.len()).unwrap_or_default();
    Claim {
        stated: "faults fall with each larger chunk",
        holds: !chunks.is_empty() && chunks.is_sorted_by(|more, less| more > less),
        because: listed(&found),
    }
}

fn adaptive(runs: &Runs<'_>) -> Claim {
    let over_best = CHUNKINGS.iter().filter_map(|chunking| {
        let adaptive = chunking.run(runs, chunking.adaptive)?;
        Some(adaptive.seconds() / chunking.least_seconds(runs))
    });
    let over_best: Vec<f64> = over_best.collect();
    Claim {
        stated: "adaptive groups take at most 1.05 times as long as the best chunk \
                 (not the paper's)",
        holds: over_best.len() == CHUNKINGS.len() && over_best.iter().all(|ratio| *ratio <= 1.05),
        because: over_best
            .iter()
            .zip(&CHUNKINGS)
            .map(|(ratio, chunking)| format!("{} {ratio:.2}", chunking.title))
            .collect::<Vec<_>>()
            .join("; "),
    }
}

fn units(runs: &Runs<'_>) -> [Claim; 2] {
    let variants = [Variant::Millipage, Variant::Unit(128), Variant::Unit(256)];
    let runs = variants.map(|variant| runs.of("TSP", MOST, variant));
    let least = |found: &[u64]| found[0] < found[1] && found[0] < found[2];
    let of = |count: fn(Run<'_>) -> u64| runs.map(|run| run.map_or(u64::MAX, count));
    let competing = of(|run| run.counted("competing_requests"));
    let faults = of(|run| run.faults().iter().sum());
    [
        Claim {
            stated: "TSP has the fewest competing requests with 148 bytes, of 148, 128 and 256",
            holds: least(&competing),
            because: listed(&competing),
        },
        Claim {
            stated: "TSP faults least often with 148 bytes",
            holds: least(&faults),
            because: listed(&faults),
        },
    ]
}
