//! Floyd's algorithm with rows that nodes take from each other in sections (Jackal, section 7). A
//! row goes down a tree of nodes. Each node has a ring of rows at its home. It copies a row to the
//! ring once all children have read what was there, and a child waits for the row in a section.

use dhole::{Coherence, Lockable, Ref, Result, Row, Section, Share, Worker, section};

use super::kernel::{found, relax};
use super::tree::{block, children, owner, parent};
use super::{Found, Graph};
use crate::share::Construct;
use crate::solve::Steps;

/// Rows of a ring.
const RING: usize = 4;

/// A place of a ring.
#[derive(Share, Clone, Copy)]
struct Place {
    /// One more than the number of the row that is there; 0 for none.
    holds: u64,
    /// The children that have yet to read it.
    left: u64,
    row: Row<u32>,
}

/// A node's ring.
#[derive(Share, Clone, Copy)]
struct Ring {
    places: [Place; RING],
}

impl Ring {
    fn place(&mut self, number: u64) -> &mut Place {
        &mut self.places[number as usize % RING]
    }
}

/// Waits until all children have read the row that was at the place of this one.
fn empty(s: &mut Section<'_>, (ring, number): (Ref<Ring>, u64)) -> Result<Row<u32>> {
    let place = *s.read(ring)?.place(number);
    s.wait_until(place.left == 0)?;
    Ok(place.row)
}

/// The row is there, for so many children.
fn offer(s: &mut Section<'_>, (ring, number, left): (Ref<Ring>, u64, u64)) -> Result<()> {
    let place = s.get_mut(ring)?.place(number);
    (place.holds, place.left) = (number + 1, left);
    Ok(())
}

/// A child has read the row with this number less one, if it is not 0.
fn has_read(s: &mut Section<'_>, (ring, read): (Ref<Ring>, u64)) -> Result<()> {
    if let Some(read) = read.checked_sub(1) {
        s.get_mut(ring)?.place(read).left -= 1;
    }
    Ok(())
}

/// Waits for a row. The child has read the one before.
fn take(s: &mut Section<'_>, (ring, number, read): (Ref<Ring>, u64, u64)) -> Result<Row<u32>> {
    has_read(s, (ring, read))?;
    let place = *s.read(ring)?.place(number);
    s.wait_until(place.holds == number + 1)?;
    Ok(place.row)
}

/// What a node has read of the ring of another one and not told: one more than a row's number.
#[derive(Clone, Copy, Default)]
struct Read {
    from: usize,
    read: u64,
}

impl Read {
    fn tell(&mut self, w: &mut Worker<'_>, rings: &[Ref<Ring>]) -> Result<()> {
        let Read { from, read } = std::mem::take(self);
        if read > 0 {
            let ring = rings[from];
            ring.lock().run(w, (ring, read), section!(has_read))?;
        }
        Ok(())
    }
}

/// All shortest paths.
///
/// # Errors
/// Those of the runtime.
pub fn solve(
    w: &mut Worker<'_>,
    graph: &Graph,
    steps: &mut Steps,
    construct: Construct,
) -> Result<Found> {
    let (nodes, me, vertices) = (w.nodes(), w.node().index(), graph.vertices);
    let rings = construct.each(w, |w, _| {
        let rows = w.under(Coherence::Home).alloc_rows(RING, vertices);
        let place = |at| Place {
            holds: 0,
            left: 0,
            row: rows.row(at),
        };
        let places = std::array::from_fn(place);
        Ok(w.under(Coherence::Home).alloc(Ring { places }))
    })?;
    let block = block(vertices, nodes, me);
    let mut rows = graph.rows(|row| block.contains(&row));
    steps.begin(w)?;
    let mut read = Read::default();
    for vertex in 0..vertices {
        let (number, root) = (vertex as u64, owner(vertices, nodes, vertex));
        let through = match parent(root, me, nodes) {
            None => rows[vertex - block.start].1.clone(),
            Some(from) => {
                if read.from != from {
                    read.tell(w, &rings)?;
                }
                let ring = rings[from];
                let arguments = (ring, number, read.read);
                let row = ring.lock().run(w, arguments, section!(take))?;
                read = Read {
                    from,
                    read: number + 1,
                };
                row.get(w).to_vec()
            }
        };
        let left = children(root, me, nodes).count() as u64;
        if left > 0 {
            let ring = rings[me];
            let row = ring.lock().run(w, (ring, number), section!(empty))?;
            row.get_mut(w).copy_from_slice(&through);
            ring.lock().run(w, (ring, number, left), section!(offer))?;
        }
        for (_, row) in &mut rows {
            relax(row, vertex, &through);
        }
        w.work((rows.len() * vertices) as u64);
    }
    read.tell(w, &rings)?;
    let mine = found(rows.iter().map(|(from, row)| (*from, row)));
    steps.end(w)?;
    Ok(w.all_reduce(mine, Found::and)?)
}
