//! The inner loop, which the sequential and the shared version both call.

/// Which columns of a row an array of one colour holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Columns {
    /// Columns 0 (the wall), 2, 4, ...
    Even,
    /// Columns 1, 3, 5, ...
    Odd,
}

/// Relaxes the points of one row of one colour: each moves by `omega` times its distance from
/// the average of its four neighbours.
///
/// `out` holds the points, in the columns that `which` says; `above`, `below` and `same` are the
/// other colour's rows `i - 1`, `i + 1` and `i`; `columns` counts the interior columns of both
/// colours, at least 1. All four rows have `columns / 2 + 1` numbers.
///
/// The order of the additions is fixed: `(above + below) + (left + right)`.
///
/// # Panics
/// When a row is shorter than that, or `columns` is 0.
pub fn relax(
    out: &mut [f64],
    [above, below, same]: [&[f64]; 3],
    which: Columns,
    columns: usize,
    omega: f64,
) {
    let last = columns / 2;
    let (out, above, below, same) = (
        &mut out[..=last],
        &above[..=last],
        &below[..=last],
        &same[..=last],
    );
    match which {
        // Point k is column 2k + 1: between `same[k]` and `same[k + 1]`.
        Columns::Odd => {
            relax_run(
                &mut out[..last],
                &above[..last],
                &below[..last],
                same,
                &same[1..],
                omega,
            );
            if columns % 2 == 1 {
                let wall = same[0];
                out[last] = relaxed(out[last], above[last], below[last], same[last], wall, omega);
            }
        }
        // Point k is column 2k: between `same[k - 1]` and `same[k]`.
        Columns::Even if columns % 2 == 1 => {
            relax_run(
                &mut out[1..],
                &above[1..],
                &below[1..],
                same,
                &same[1..],
                omega,
            );
        }
        Columns::Even => {
            let inner = 1..last;
            relax_run(
                &mut out[inner.clone()],
                &above[inner.clone()],
                &below[inner],
                same,
                &same[1..],
                omega,
            );
            let wall = out[0];
            out[last] = relaxed(
                out[last],
                above[last],
                below[last],
                same[last - 1],
                wall,
                omega,
            );
        }
    }
}

/// Relaxes points whose neighbours all lie at the same place of their slices.
///
/// They are written by pairs, of which the compiler makes a turn of two. One pair a turn would be
/// as much work in a sixth more time, or less, as the linker happens to lay the loop.
#[inline]
fn relax_run(
    out: &mut [f64],
    above: &[f64],
    below: &[f64],
    left: &[f64],
    right: &[f64],
    omega: f64,
) {
    let n = out.len();
    let (above, below, left, right) = (&above[..n], &below[..n], &left[..n], &right[..n]);
    let (pairs, out) = out.as_chunks_mut::<2>();
    let (aboves, above) = above.as_chunks::<2>();
    let (belows, below) = below.as_chunks::<2>();
    let (lefts, left) = left.as_chunks::<2>();
    let (rights, right) = right.as_chunks::<2>();
    let neighbours = aboves.iter().zip(belows).zip(lefts.iter().zip(rights));
    for (out, ((a, b), (l, r))) in pairs.iter_mut().zip(neighbours) {
        *out = [
            relaxed(out[0], a[0], b[0], l[0], r[0], omega),
            relaxed(out[1], a[1], b[1], l[1], r[1], omega),
        ];
    }
    if let ([out], [a], [b], [l], [r]) = (out, above, below, left, right) {
        *out = relaxed(*out, *a, *b, *l, *r, omega);
    }
}

#[inline(always)]
pub(super) fn relaxed(old: f64, above: f64, below: f64, left: f64, right: f64, omega: f64) -> f64 {
    old + omega * (0.25 * ((above + below) + (left + right)) - old)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABOVE: [f64; 3] = [1.0, 2.0, 3.0];
    const BELOW: [f64; 3] = [10.0, 20.0, 30.0];
    const SAME: [f64; 3] = [100.0, 200.0, 300.0];

    fn relax_one(which: Columns, columns: usize) -> [f64; 3] {
        let mut out = [7.0; 3];
        relax(&mut out, [&ABOVE, &BELOW, &SAME], which, columns, 1.0);
        out
    }

    #[test]
    fn an_even_point_lies_after_the_odd_point_of_the_lower_index() {
        assert_eq!(relax_one(Columns::Even, 5), [7.0, 322.0 / 4.0, 533.0 / 4.0]);
    }

    #[test]
    fn an_odd_point_lies_before_the_even_point_of_the_higher_index() {
        assert_eq!(relax_one(Columns::Odd, 5)[..2], [311.0 / 4.0, 522.0 / 4.0]);
    }

    #[test]
    fn the_right_wall_has_the_value_of_the_left_one() {
        let odd_at_the_wall = relax_one(Columns::Odd, 5)[2];
        assert_eq!(odd_at_the_wall, (3.0 + 30.0 + 300.0 + 100.0) / 4.0);
        let even_at_the_wall = relax_one(Columns::Even, 4)[2];
        assert_eq!(even_at_the_wall, (3.0 + 30.0 + 200.0 + 7.0) / 4.0);
    }

    #[test]
    fn the_padding_of_an_even_width_is_left_alone() {
        assert_eq!(relax_one(Columns::Odd, 4)[2], 7.0);
    }

    #[test]
    fn omega_scales_the_correction() {
        let mut out = [4.0, 4.0, 4.0];
        relax(
            &mut out,
            [&[8.0; 3], &[8.0; 3], &[8.0; 3]],
            Columns::Even,
            5,
            1.5,
        );
        assert_eq!(out, [4.0, 10.0, 10.0]);
    }
}
