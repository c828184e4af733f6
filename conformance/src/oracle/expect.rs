//! The plain sequential run, and the check that its order does not matter.

use std::collections::BTreeMap;

use super::program::{ARRAY_LEN, ARRAYS, Action, Part, Program, ROW_LEN, SUMS, digest, written};

/// Two nodes may touch one object at once: the program itself is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Race {
    /// The phase.
    pub phase: usize,
    /// The second node.
    pub node: usize,
    /// Its action.
    pub action: Action,
}

/// The digest of everything that each node reads.
///
/// # Errors
/// [`Race`] when the program has one, or uses what is not there.
pub fn expected(program: &Program) -> Result<Vec<u64>, Race> {
    let mut world = World::new(program);
    for (number, phase) in program.phases.iter().enumerate() {
        for (node, actions) in phase.actions.iter().enumerate() {
            for action in actions {
                if !world.act(node, *action) {
                    let (phase, action) = (number, *action);
                    return Err(Race {
                        phase,
                        node,
                        action,
                    });
                }
            }
        }
        world.meet();
    }
    Ok(world.read_all())
}

#[derive(Clone, Copy, Debug)]
struct Item {
    value: u64,
    next: Option<usize>,
}

/// A shared object.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Object {
    Slot(usize),
    Item(usize),
    Row(usize),
    Sum(usize),
    Element(usize, usize),
}

/// How an object is touched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum How {
    Reading,
    Writing,
    Adding,
    /// By updates. They are combined at some time before the node synchronises, so nobody else
    /// touches the object meanwhile, the node itself neither.
    Updating,
}

/// The nodes that have touched an object in this phase, as bits.
#[derive(Clone, Copy, Default)]
struct Touched {
    reading: u32,
    writing: u32,
    adding: u32,
    updating: u32,
}

impl Touched {
    fn allows(&self, node: usize, how: How) -> bool {
        let others = !(1 << node);
        let by_others = match how {
            How::Reading => self.writing | self.adding,
            How::Writing => self.writing | self.adding | self.reading,
            How::Adding => self.writing | self.reading,
            How::Updating => return self.writing | self.adding | self.reading == 0,
        };
        by_others & others == 0 && self.updating == 0
    }

    fn note(&mut self, node: usize, how: How) {
        let nodes = match how {
            How::Reading => &mut self.reading,
            How::Writing => &mut self.writing,
            How::Adding => &mut self.adding,
            How::Updating => &mut self.updating,
        };
        *nodes |= 1 << node;
    }
}

/// The state of the sequential run.
pub(crate) struct World {
    items: Vec<Option<Item>>,
    rows: Vec<[u64; ROW_LEN]>,
    arrays: [[u64; ARRAY_LEN]; ARRAYS],
    sums: Vec<u64>,
    touched: BTreeMap<Object, Touched>,
    digests: Vec<u64>,
}

impl World {
    pub fn new(program: &Program) -> World {
        World {
            items: vec![None; program.items],
            rows: vec![[0; ROW_LEN]; program.rows],
            arrays: [[0; ARRAY_LEN]; ARRAYS],
            sums: vec![0; if program.sums { SUMS } else { 0 }],
            touched: BTreeMap::new(),
            digests: vec![0; program.nodes],
        }
    }

    /// Whether the item has been allocated.
    pub fn exists(&self, item: usize) -> bool {
        self.items[item].is_some()
    }

    /// All nodes meet: what each did is before what any does next.
    pub fn meet(&mut self) {
        self.touched.clear();
    }

    /// Does what a node does, unless that is a race or needs what is not there.
    pub fn act(&mut self, node: usize, action: Action) -> bool {
        let Some(touches) = self.touches(action) else {
            return false;
        };
        let allowed = |(object, how): &(Object, How)| {
            self.touched
                .get(object)
                .is_none_or(|touched| touched.allows(node, *how))
        };
        if !touches.iter().all(allowed) {
            return false;
        }
        for (object, how) in touches {
            self.touched.entry(object).or_default().note(node, how);
        }
        self.apply(node, action);
        true
    }

    /// The objects that an action touches; `None` if it is impossible.
    fn touches(&self, action: Action) -> Option<Vec<(Object, How)>> {
        use How::{Adding, Reading, Updating, Writing};
        let mut touches = Vec::new();
        let mut item = |item: usize, how| {
            touches.extend([(Object::Slot(item), Reading), (Object::Item(item), how)]);
            self.items[item].map(drop)
        };
        match action {
            Action::Alloc { first, count } => {
                for new in first..first + count {
                    self.items[new].is_none().then_some(())?;
                    touches.push((Object::Slot(new), Writing));
                }
            }
            Action::Read(at) => item(at, Reading)?,
            Action::Write(at, _) | Action::Put(at, _) => item(at, Writing)?,
            Action::Link(at, to) => {
                item(at, Writing)?;
                self.items[to]?;
                touches.push((Object::Slot(to), Reading));
            }
            Action::Walk(at, steps) => {
                item(at, Reading)?;
                let followers = self.walk(at, steps).into_iter().skip(1);
                touches.extend(followers.map(|at| (Object::Item(at), Reading)));
            }
            Action::Combine(at, with) => {
                (at != with).then_some(())?;
                item(at, Writing)?;
                item(with, Reading)?;
            }
            Action::Add(at, _) => item(at, Adding)?,
            Action::Move(from, to, _) => {
                (from < to).then_some(())?;
                item(from, Adding)?;
                item(to, Adding)?;
            }
            Action::ReadRow(row) => touches.push((Object::Row(row), Reading)),
            Action::WriteRow(row, ..) => touches.push((Object::Row(row), Writing)),
            Action::AddToRow(row, ..) => touches.push((Object::Row(row), Adding)),
            Action::ReadPart(part) | Action::Prefetch(part) => touch(part, Reading, &mut touches),
            Action::WritePart(part, _) | Action::Overwrite(part, _) => {
                touch(part, Writing, &mut touches);
            }
            Action::AddToPart(part, _) => touch(part, Adding, &mut touches),
            Action::Update(part, _) => touch(part, Updating, &mut touches),
            Action::Start(sum, ..) => touches.push((Object::Sum(sum), Adding)),
            Action::ReadSum(sum) => touches.push((Object::Sum(sum), Reading)),
            Action::Work(_) | Action::Pause => {}
        }
        Some(touches)
    }

    /// An item and those that follow it.
    fn walk(&self, at: usize, steps: usize) -> Vec<usize> {
        let next = |at: &usize| self.items[*at].and_then(|item| item.next);
        std::iter::successors(Some(at), next)
            .take(steps + 1)
            .collect()
    }

    fn apply(&mut self, node: usize, action: Action) {
        match action {
            Action::Alloc { first, count } => {
                for new in first..first + count {
                    let value = new as u64;
                    self.items[new] = Some(Item { value, next: None });
                }
            }
            Action::Read(at) => self.read(node, at),
            Action::Write(at, with) => {
                let value = self.item(at).value;
                self.digests[node] = digest(self.digests[node], value);
                self.item(at).value = written(value, with);
            }
            Action::Put(at, value) => {
                let item = self.item(at);
                (item.value, item.next) = (value, None);
            }
            Action::Link(at, to) => self.item(at).next = Some(to),
            Action::Walk(at, steps) => {
                for at in self.walk(at, steps) {
                    self.read(node, at);
                }
            }
            Action::Combine(at, with) => {
                let with = self.item(with).value;
                let item = self.item(at);
                item.value = written(item.value, with);
            }
            Action::Add(at, value) => {
                let item = self.item(at);
                item.value = item.value.wrapping_add(value);
            }
            Action::Move(from, to, value) => {
                let (less, more) = (self.item(from).value, self.item(to).value);
                self.item(from).value = less.wrapping_sub(value);
                self.item(to).value = more.wrapping_add(value);
            }
            Action::ReadRow(row) => self.read_row(node, row),
            Action::WriteRow(row, at, with) => {
                self.rows[row][at] = written(self.rows[row][at], with);
            }
            Action::AddToRow(row, at, value) => {
                self.rows[row][at] = self.rows[row][at].wrapping_add(value);
            }
            Action::ReadPart(part) => {
                let values = &self.arrays[part.array][part.start..part.end];
                self.digests[node] = values.iter().copied().fold(self.digests[node], digest);
            }
            Action::WritePart(part, with) => {
                let values = &mut self.arrays[part.array][part.start..part.end];
                values
                    .iter_mut()
                    .for_each(|value| *value = written(*value, with));
            }
            Action::Overwrite(part, with) => {
                self.arrays[part.array][part.start..part.end].fill(with);
            }
            Action::AddToPart(part, value) => {
                let element = &mut self.arrays[part.array][part.start];
                *element = element.wrapping_add(value);
            }
            Action::Update(part, value) => {
                for at in part.updated() {
                    let element = &mut self.arrays[part.array][at];
                    *element = element.wrapping_add(value);
                }
            }
            Action::Start(sum, value, times) => self.sums[sum] += value * times,
            Action::ReadSum(sum) => self.read_sum(node, sum),
            Action::Prefetch(_) | Action::Work(_) | Action::Pause => {}
        }
    }

    fn item(&mut self, at: usize) -> &mut Item {
        self.items[at]
            .as_mut()
            .expect("what an action touches is there")
    }

    fn read(&mut self, node: usize, at: usize) {
        let value = self.item(at).value;
        self.digests[node] = digest(self.digests[node], value);
    }

    fn read_row(&mut self, node: usize, row: usize) {
        let values = self.rows[row];
        self.digests[node] = values.into_iter().fold(self.digests[node], digest);
    }

    fn read_sum(&mut self, node: usize, sum: usize) {
        self.digests[node] = digest(self.digests[node], self.sums[sum]);
    }

    /// All nodes read everything in the end.
    pub fn read_all(mut self) -> Vec<u64> {
        for node in 0..self.digests.len() {
            for at in 0..self.items.len() {
                if self.exists(at) {
                    self.read(node, at);
                }
            }
            for row in 0..self.rows.len() {
                self.read_row(node, row);
            }
            (0..self.sums.len()).for_each(|sum| self.read_sum(node, sum));
            let values = self.arrays.iter().flatten().copied();
            self.digests[node] = values.fold(self.digests[node], digest);
        }
        self.digests
    }
}

fn touch(part: Part, how: How, touches: &mut Vec<(Object, How)>) {
    let places = part.start..part.end;
    touches.extend(places.map(|place| (Object::Element(part.array, place), how)));
}
