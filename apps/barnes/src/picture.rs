//! A picture of the bodies, as seen along the third axis.

use dhole::{NodeId, Refs, Share, Worker};

use super::Problem;
use apps_common::picture::Picture;
use apps_common::vector::Vector;

/// Pixels along each side.
const SIDE: u32 = 800;
/// The part of the bodies that the picture is large enough for. A few are flung far away.
const INSIDE: f64 = 0.98;
/// Objects that are asked for at a time, so that no message is too long.
const AT_A_TIME: usize = 1 << 16;

/// Where the bodies are, on node 0 and where the problem says that they are drawn.
pub(super) fn positions<B: Share>(
    w: &Worker<'_>,
    problem: &Problem,
    bodies: Refs<B>,
    position: impl Fn(&B) -> Vector,
) -> dhole::Result<Vec<Vector>> {
    let mut all = Vec::new();
    if problem.drawn && w.node() == NodeId(0) {
        for first in (0..bodies.len()).step_by(AT_A_TIME) {
            let some = bodies.slice(first..bodies.len().min(first + AT_A_TIME));
            w.prefetch(some)?;
            all.extend(some.iter().map(|body| position(body.get(w))));
        }
    }
    Ok(all)
}

/// Draws bodies at these places: the more of them in a pixel, the brighter it is.
pub fn draw(positions: &[Vector]) -> Picture {
    let count = positions.len().max(1) as f64;
    let centre = [0, 1].map(|axis| positions.iter().map(|at| at[axis]).sum::<f64>() / count);
    let away = |at: &Vector| [0, 1].map(|axis| at[axis] - centre[axis]);
    let reach = |at: &Vector| away(at).into_iter().map(f64::abs).fold(0.0, f64::max);
    let mut reaches: Vec<f64> = positions.iter().map(reach).collect();
    reaches.sort_unstable_by(f64::total_cmp);
    let last = (count * INSIDE) as usize;
    let largest = reaches.get(last.min(reaches.len().saturating_sub(1)));
    // One body alone is in the middle of any cube.
    let half = largest.copied().unwrap_or_default().max(f64::MIN_POSITIVE);

    let mut bodies = vec![0_u32; (SIDE * SIDE) as usize];
    for at in positions.iter().filter(|at| reach(at) <= half) {
        let pixel =
            |away: f64| (((away / half + 1.0) / 2.0 * f64::from(SIDE)) as u32).min(SIDE - 1);
        let [column, row] = away(at).map(pixel);
        bodies[(row * SIDE + column) as usize] += 1;
    }
    let most = bodies.iter().copied().max().unwrap_or_default();
    let mut picture = Picture::black((SIDE, SIDE));
    for (place, count) in (0..).zip(bodies).filter(|(_, count)| *count > 0) {
        let share = f64::from(count).ln_1p() / f64::from(most).ln_1p();
        let light = |least: f64| (least + (255.0 - least) * share) as u8;
        picture.paint(
            (place % SIDE, place / SIDE),
            [light(70.0), light(80.0), light(120.0)],
        );
    }
    picture
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How bright a pixel is.
    fn light(picture: &Picture, column: u32, row: u32) -> u8 {
        picture.pixels()[3 * (row * SIDE + column) as usize]
    }

    #[test]
    fn more_bodies_in_a_pixel_are_brighter_and_one_is_seen() {
        let [many, one] = [[-1.0, -1.0, 3.0], [1.0, 1.0, -5.0]];
        let picture = draw(&[many, many, one, one, [-1.0, 1.0, 0.0], [1.0, -1.0, 0.0]]);
        assert_eq!(light(&picture, 0, 0), 255);
        assert_eq!(light(&picture, SIDE - 1, SIDE - 1), 255);
        let alone = light(&picture, 0, SIDE - 1);
        assert!((71..250).contains(&alone), "{alone}");
        let lit = picture.pixels().chunks(3).filter(|pixel| pixel[0] > 0);
        assert_eq!(lit.count(), 4);
    }

    #[test]
    fn a_body_far_away_does_not_make_the_others_small() {
        let mut positions: Vec<Vector> = (0..200)
            .map(|i| [f64::from(i % 20) - 9.5, f64::from(i / 20) - 4.5, 0.0])
            .collect();
        positions.push([1e6, 0.0, 0.0]);
        positions.push([-1e6, 0.0, 0.0]);
        let picture = draw(&positions);
        let lit = picture.pixels().chunks(3).filter(|pixel| pixel[0] > 0);
        assert!(lit.count() >= 190, "each has a pixel of its own");
    }

    #[test]
    fn no_bodies_and_one_body_make_a_picture() {
        assert!(draw(&[]).pixels().iter().all(|byte| *byte == 0));
        assert_eq!(light(&draw(&[[3.0, 4.0, 5.0]]), SIDE / 2, SIDE / 2), 255);
    }
}
