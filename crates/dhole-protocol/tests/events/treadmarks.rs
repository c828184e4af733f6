//! `Event::Pages` and the messages for pages and diffs: what is asked for, of whom, and in which
//! order it is applied.

use dhole_model::{MessageKind, NodeId, PageId};
use dhole_protocol::{
    Attached, Command, DiffId, Event, LogLimits, Message, PageCommand, PageEvent, Protocol,
    ProtocolError, WantedDiffs, WorkerIs,
};
use smallvec::SmallVec;

use crate::pack::{PAGES, Pack, acquire, arrive, from, n, release, site};

const PAGE: PageId = PageId(7);

fn read(pack: &mut Pack, node: usize) -> Vec<PageCommand> {
    let (page, creator) = (PAGE, None);
    about_pages(pack.run(node, Event::Pages(PageEvent::Read { page, creator })))
}

/// A node writes the page, which it reads before.
fn write(pack: &mut Pack, node: usize) -> Vec<PageCommand> {
    read(pack, node);
    about_pages(pack.local(node, Event::Pages(PageEvent::Write { page: PAGE })))
}

fn about_pages(commands: Vec<Command>) -> Vec<PageCommand> {
    let about = |command| match command {
        Command::Pages(command) => Some(command),
        _ => None,
    };
    commands.into_iter().filter_map(about).collect()
}

fn id(node: usize, index: u32) -> DiffId {
    let (page, node) = (PAGE, n(node));
    DiffId { page, node, index }
}

/// Whose diffs are applied, in order.
fn applied(commands: &[PageCommand]) -> Vec<DiffId> {
    let applied = |command: &PageCommand| match command {
        PageCommand::Apply(id) => Some(*id),
        _ => None,
    };
    commands.iter().filter_map(applied).collect()
}

fn of_kind(pack: &Pack, kind: MessageKind) -> usize {
    pack.sent.get(&kind).copied().unwrap_or(0)
}

/// A pack of nodes that all have the page, as zeros.
fn pack(nodes: usize) -> Pack {
    let mut pack = Pack::new(nodes);
    (0..nodes).for_each(|node| drop(read(&mut pack, node)));
    pack
}

/// A pack of three that collects diffs when one of them has so many bytes of them.
fn collecting(from: u64) -> Pack {
    let limits = LogLimits {
        collect_pages_from: from,
        ..LogLimits::default()
    };
    Pack::with_limits(3, limits)
}

#[test]
fn a_page_that_nobody_wrote_is_zeros_and_costs_no_message() {
    let mut pack = Pack::new(2);
    let done = read(&mut pack, 1);
    assert_eq!(
        done,
        [PageCommand::ZeroFill(PAGE), PageCommand::MakeValid(PAGE)]
    );
    assert_eq!(pack.messages(), 0);
}

#[test]
fn concurrent_writers_are_each_asked_once_and_all_their_changes_are_applied() {
    let mut pack = pack(3);
    assert_eq!(write(&mut pack, 0), [PageCommand::MakeTwin(PAGE)]);
    write(&mut pack, 1);
    pack.barrier();
    pack.messages();
    let done = read(&mut pack, 2);
    assert_eq!(applied(&done), [id(0, 1), id(1, 1)]);
    assert_eq!(done.last(), Some(&PageCommand::MakeValid(PAGE)));
    assert_eq!(of_kind(&pack, MessageKind::DiffRequest), 2);
    assert_eq!(of_kind(&pack, MessageKind::DiffReply), 2);
    assert_eq!(pack.messages(), 4, "and nothing else");
}

#[test]
fn who_saw_the_others_changes_is_asked_for_them_too() {
    let mut pack = pack(3);
    for node in [0, 1] {
        pack.run(node, acquire(1));
        write(&mut pack, node);
        pack.run(node, release(1));
    }
    pack.run(2, acquire(1));
    pack.messages();
    let done = read(&mut pack, 2);
    assert_eq!(
        applied(&done),
        [id(0, 1), id(1, 1)],
        "in the order of happens-before"
    );
    assert_eq!(pack.messages(), 2, "node 1 has both");
}

#[test]
fn a_page_whose_diff_nobody_wants_is_twinned_and_announced_once() {
    let mut pack = pack(2);
    write(&mut pack, 0);
    let done = pack.begin(0, arrive());
    assert!(done.contains(&Command::Pages(PageCommand::Protect(PAGE))));
    pack.begin(1, arrive());
    pack.settle();
    let again = pack.local(0, Event::Pages(PageEvent::Write { page: PAGE }));
    assert_eq!(again, [Command::Pages(PageCommand::MakeWritable(PAGE))]);
    let silent = pack.begin(0, arrive());
    assert!(
        !silent.contains(&Command::IntervalEnded),
        "nothing to announce"
    );
    pack.begin(1, arrive());
    pack.settle();
    assert_eq!(applied(&read(&mut pack, 1)), [id(0, 1)]);
    assert!(pack.done[0].contains(&Command::Pages(PageCommand::MakeDiff(id(0, 1)))));
    let twin = pack.local(0, Event::Pages(PageEvent::Write { page: PAGE }));
    assert_eq!(twin, [Command::Pages(PageCommand::MakeTwin(PAGE))]);
    pack.barrier();
    assert_eq!(applied(&read(&mut pack, 1)), [id(0, 2)]);
}

#[test]
fn a_notice_for_a_page_that_is_written_here_makes_the_diff() {
    let mut pack = pack(2);
    write(&mut pack, 0);
    write(&mut pack, 1);
    pack.begin(0, arrive());
    let done = pack.run(1, arrive());
    let (diff, gone) = (
        PageCommand::MakeDiff(id(1, 1)),
        PageCommand::Invalidate(PAGE),
    );
    let at = |of: PageCommand| {
        done.iter()
            .position(|done| *done == Command::Pages(of.clone()))
    };
    assert!(
        at(diff) < at(gone.clone()) && at(gone).is_some(),
        "{done:?}"
    );
    let done = read(&mut pack, 1);
    assert_eq!(
        applied(&done),
        [id(0, 1)],
        "its own changes are there already"
    );
}

#[test]
fn a_node_without_a_copy_asks_for_the_page_and_then_for_what_it_lacks() {
    let mut pack = Pack::new(3);
    write(&mut pack, 0);
    write(&mut pack, 1);
    pack.barrier();
    pack.messages();
    let done = read(&mut pack, 2);
    assert_eq!(done[0], PageCommand::Install(PAGE));
    assert_eq!(
        applied(&done),
        [id(0, 1)],
        "the page is node 1's, the last writer's"
    );
    assert_eq!(of_kind(&pack, MessageKind::PageRequest), 1);
    assert_eq!(of_kind(&pack, MessageKind::DiffRequest), 1);
}

#[test]
fn who_got_the_whole_page_has_no_diffs_of_others_so_they_are_asked_themselves() {
    let mut pack = Pack::new(3);
    read(&mut pack, 2);
    for node in [0, 1] {
        pack.run(node, acquire(1));
        write(&mut pack, node);
        pack.run(node, release(1));
    }
    pack.run(2, acquire(1));
    pack.messages();
    assert_eq!(applied(&read(&mut pack, 2)), [id(0, 1), id(1, 1)]);
    assert_eq!(pack.messages(), 4);
}

#[test]
fn a_notice_of_what_came_before_it_makes_the_diff_of_what_is_written_here() {
    let (mut pack, page, creator) = (Pack::new(3), PAGE, None);
    write(&mut pack, 0);
    pack.barrier();
    read(&mut pack, 2);
    let twin = pack.local(0, Event::Pages(PageEvent::Write { page }));
    assert_eq!(twin, [Command::Pages(PageCommand::MakeTwin(page))]);
    // The page is asked for before node 0's second announcement, and sent after it.
    pack.begin(1, Event::Pages(PageEvent::Read { page, creator }));
    let asked = pack.in_flight.pop_front().expect("a question");
    pack.begin(0, arrive());
    pack.in_flight.push_front(asked);
    pack.settle();
    pack.local(1, Event::Pages(PageEvent::Write { page }));
    pack.begin(2, arrive());
    let done = pack.run(1, arrive());
    let diff = Command::Pages(PageCommand::MakeDiff(id(1, 1)));
    assert!(done.contains(&diff), "{done:?}");
    assert!(
        !done.contains(&Command::Pages(PageCommand::Invalidate(page))),
        "it is all there"
    );
}

#[test]
fn what_is_not_announced_is_not_sent_and_what_is_being_written_waits() {
    let mut pack = pack(2);
    write(&mut pack, 0);
    let (round, page) = (1, PAGE);
    let ask = from(1, Message::PageRequest { round, page });
    let mut out = Vec::new();
    let node = &mut pack.nodes[0];
    node.step(ask, WorkerIs::Computing, &mut out).unwrap();
    let [Command::Pages(PageCommand::ReplyPage { twin, applied, .. })] = &out[..] else {
        panic!("{out:?}")
    };
    assert!(*twin && applied.is_empty(), "as it was before the interval");
    pack.barrier();
    pack.local(0, Event::Pages(PageEvent::Write { page: PAGE }));
    let wanted = WantedDiffs {
        node: n(0),
        after: 0,
        up_to: 1,
    };
    let ask = from(
        1,
        Message::DiffRequest {
            round,
            page,
            wanted: [wanted].into_iter().collect(),
        },
    );
    let done = pack.step(0, ask.clone(), WorkerIs::Computing).unwrap();
    assert_eq!(done, [Command::Deferred]);
    let mut other = pack.nodes[0].clone();
    let twice = other.step(ask, WorkerIs::Computing, &mut Vec::new());
    assert!(matches!(twice, Err(ProtocolError::BadMessage { .. })));
    let served = pack.begin(0, Event::Serve);
    assert_eq!(served, [Command::Pages(PageCommand::MakeDiff(id(0, 1)))]);
}

#[test]
fn an_object_that_must_not_be_zeros_is_asked_for_where_it_was_made() {
    let mut pack = Pack::new(2);
    let (page, creator) = (PAGE, Some(n(0)));
    pack.run(1, Event::Pages(PageEvent::Read { page, creator }));
    assert_eq!(of_kind(&pack, MessageKind::PageRequest), 1);
}

#[test]
fn after_a_collection_nothing_is_kept_but_copies_that_are_valid() {
    let mut pack = collecting(1);
    (0..3).for_each(|node| drop(write(&mut pack, node)));
    pack.barrier();
    let to_validate: Vec<_> = pack
        .nodes
        .iter()
        .map(|node| node.pages_to_validate())
        .collect();
    let none = Some(vec![]);
    assert_eq!(
        to_validate,
        [none.clone(), none, Some(vec![PAGE])],
        "node 2 wrote last"
    );
    read(&mut pack, 2);
    (0..3).for_each(|node| drop(pack.begin(node, Event::ArriveToCollect { site: site(1) })));
    pack.settle();
    for node in 0..3 {
        let done = pack.local(node, Event::Pages(PageEvent::Collect));
        let dropped = done.contains(&Command::Pages(PageCommand::Drop(PAGE)));
        assert_eq!(dropped, node < 2);
        assert_eq!(pack.nodes[node].page_records_kept(), [0, 0]);
    }
    assert_eq!(pack.nodes[0].pages_to_validate(), None);
    pack.messages();
    let done = read(&mut pack, 0);
    assert_eq!(done[0], PageCommand::Install(PAGE), "of its keeper");
    assert_eq!(pack.messages(), 2);
    write(&mut pack, 2);
    pack.barrier();
    assert_eq!(applied(&read(&mut pack, 0)), [id(2, 2)]);
}

/// All meet, keep what they are to keep, and collect: node 0 before the others, and then it does
/// something.
fn collect_and_then(pack: &mut Pack, then: impl FnOnce(&mut Pack)) {
    pack.barrier();
    for node in 0..3 {
        let keeps = pack.nodes[node].pages_to_validate().expect("it collects");
        keeps.into_iter().for_each(|page| {
            assert_eq!(page, PAGE);
            read(pack, node);
        });
    }
    (0..3).for_each(|node| drop(pack.begin(node, Event::ArriveToCollect { site: site(1) })));
    pack.settle();
    pack.local(0, Event::Pages(PageEvent::Collect));
    then(pack);
    (1..3).for_each(|node| drop(pack.local(node, Event::Pages(PageEvent::Collect))));
}

#[test]
fn writers_who_are_in_a_page_of_a_keeper_that_collects_later_are_forgotten_in_their_turn() {
    let mut pack = collecting(1);
    write(&mut pack, 1);
    write(&mut pack, 2);
    // Node 2 keeps the page, and has not forgotten that node 1 is in it.
    collect_and_then(&mut pack, |pack| drop(read(pack, 0)));
    let creator = None;
    let other = PageId(8);
    pack.run(
        1,
        Event::Pages(PageEvent::Read {
            page: other,
            creator,
        }),
    );
    pack.local(1, Event::Pages(PageEvent::Write { page: other }));
    collect_and_then(&mut pack, |_| {});
    assert_eq!(pack.nodes[0].page_records_kept(), [0, 0]);
    write(&mut pack, 1);
    pack.barrier();
    assert_eq!(applied(&read(&mut pack, 0)).len(), 1);
}

#[test]
fn diffs_are_collected_as_soon_as_they_fill_one_nodes_memory() {
    let mut pack = collecting(5000);
    let collects = |pack: &mut Pack| {
        pack.barrier();
        let validate = pack.nodes.iter().map(|node| node.pages_to_validate());
        validate.map(|pages| pages.is_some()).collect::<Vec<_>>()
    };
    write(&mut pack, 1);
    assert_eq!(collects(&mut pack), [false; 3], "a twin and two records");
    read(&mut pack, 2);
    pack.nodes[2].keeps_diff(4000);
    assert_eq!(collects(&mut pack), [false; 3]);
    pack.nodes[2].keeps_diff(1000);
    assert!(pack.nodes[2].is_full_of_pages() && !pack.nodes[0].is_full_of_pages());
    assert_eq!(collects(&mut pack), [true; 3], "node 2 says so");
    (0..3).for_each(|node| drop(pack.begin(node, Event::ArriveToCollect { site: site(1) })));
    pack.settle();
    (0..3).for_each(|node| drop(pack.local(node, Event::Pages(PageEvent::Collect))));
    assert_eq!(collects(&mut pack), [false; 3], "once is enough");
}

#[test]
fn answers_that_nobody_asked_for_are_refused_or_passed_over() {
    let mut pack = pack(3);
    write(&mut pack, 0);
    pack.barrier();
    let (page, creator) = (PAGE, None);
    pack.begin(1, Event::Pages(PageEvent::Read { page, creator }));
    let (_, _, Message::DiffRequest { round, wanted, .. }) = pack.in_flight[0].clone() else {
        panic!("diffs are asked for")
    };
    let reply = |got: &[WantedDiffs], round| Message::DiffReply {
        round,
        page,
        got: got.iter().copied().collect(),
        diffs: Default::default(),
    };
    pack.refuse(1, from(2, reply(&wanted, round)));
    pack.refuse(1, from(0, reply(&[], round)));
    let up_to = WantedDiffs {
        up_to: 9,
        ..wanted[0]
    };
    pack.refuse(1, from(0, reply(&[up_to], round)));
    let applied = Default::default();
    pack.refuse(
        1,
        from(
            0,
            Message::PageReply {
                round,
                page,
                applied,
            },
        ),
    );
    let late = pack.local(1, from(0, reply(&wanted, round + 1)));
    assert_eq!(late, []);
}

#[test]
fn messages_about_nodes_and_pages_that_there_are_not_are_refused() {
    let mut pack = pack(2);
    let (round, page) = (1, PAGE);
    let applied = [(NodeId(9), 1)].into_iter().collect();
    pack.refuse(
        0,
        from(
            1,
            Message::PageReply {
                round,
                page,
                applied,
            },
        ),
    );
    let wanted = Default::default();
    pack.refuse(
        0,
        from(
            1,
            Message::DiffRequest {
                round,
                page,
                wanted,
            },
        ),
    );
}

/// A node's messages about a page, and a notice that it wrote it.
fn about(page: PageId) -> Vec<Message> {
    let mut pack = Pack::new(2);
    let (creator, wanted) = (
        Some(n(1)),
        [WantedDiffs {
            node: n(0),
            after: 0,
            up_to: 1,
        }],
    );
    drop(read(&mut pack, 1));
    pack.begin(
        0,
        Event::Pages(PageEvent::Read {
            page: PAGE,
            creator,
        }),
    );
    pack.settle();
    pack.local(1, Event::Pages(PageEvent::Write { page: PAGE }));
    pack.begin(1, arrive());
    let (_, _, mut arrival) = pack.in_flight.pop_front().expect("that it is there");
    if let Message::BarrierArrive { news, .. } = &mut arrival {
        let interval = std::sync::Arc::make_mut(&mut news.intervals[0]);
        let Attached::Pages(pages) = &mut interval.attached else {
            panic!("it wrote a page");
        };
        std::sync::Arc::make_mut(pages).ranges[0].first = page;
    }
    let (round, got, diffs) = (1, SmallVec::from(wanted), SmallVec::new());
    let wanted = got.clone();
    vec![
        arrival,
        Message::PageRequest { round, page },
        Message::PageReply {
            round,
            page,
            applied: SmallVec::new(),
        },
        Message::DiffRequest {
            round,
            page,
            wanted,
        },
        Message::DiffReply {
            round,
            page,
            got,
            diffs,
        },
    ]
}

/// Whether node 0 refuses a message of node 1 with these words, and is as it was.
fn is_refused(node: &Protocol, message: Message, words: &str) -> bool {
    let (mut after, mut out) = (node.clone(), Vec::new());
    let refused = after.step(from(1, message), WorkerIs::InCall, &mut out);
    let said = refused.is_err_and(|why| why.to_string().contains(words));
    said && after == *node && out.is_empty()
}

#[test]
fn a_run_that_keeps_objects_refuses_every_message_about_pages() {
    let node = Protocol::new(n(0), 2);
    for message in about(PAGE) {
        let kind = message.kind();
        assert!(is_refused(&node, message, "no pages"), "{kind:?}");
    }
}

#[test]
fn pages_on_which_no_object_can_lie_are_refused() {
    let pack = pack(2);
    for page in [0, PAGES.end, u64::MAX].map(PageId) {
        for message in about(page) {
            let kind = message.kind();
            let refused = is_refused(&pack.nodes[0], message, "beyond the space");
            assert!(refused, "{kind:?} of {page}");
        }
    }
}

#[test]
fn nothing_is_kept_of_a_page_that_only_a_peer_names() {
    let mut pack = pack(2);
    let before = pack.nodes[0].clone();
    for page in (100..200).map(PageId) {
        for message in about(page).into_iter().skip(1) {
            pack.begin(0, from(1, message));
        }
    }
    assert_eq!(pack.nodes[0], before);
}
