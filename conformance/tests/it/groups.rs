//! Totally ordered groups of three, with one crash: every run.

use conformance::model::groups::{GroupBug, GroupFault, Groups, explore_group};
use dhole_protocol::group::{Method, Settings};

fn three(broadcasts: [&[u8]; 3], method: Method, crash: bool) -> Groups {
    let settings = Settings {
        method: Some(method),
        window: 4,
        acknowledge_every: 4,
        under_way: 2,
        queue: 4,
        ..Settings::reliable()
    };
    Groups {
        broadcasts: broadcasts.map(<[u8]>::to_vec).to_vec(),
        settings,
        crash,
        bug: None,
    }
}

fn sound(model: Groups) {
    let words = format!("{:?} {:?}", model.settings.method, model.broadcasts);
    let (states, fault) = explore_group(model);
    println!("{words}: {states} states");
    if let Some((fault, way)) = fault {
        panic!("{words}: {fault:?}\n{way}");
    }
}

fn caught(bug: GroupBug, expected: GroupFault, model: Groups) {
    let bug = Some(bug);
    let (states, fault) = explore_group(Groups { bug, ..model });
    let found = fault.map(|(fault, _)| fault);
    assert_eq!(found, Some(expected), "{bug:?}");
    println!("{bug:?} is caught within {states} states");
}

#[test]
fn three_members_agree_whoever_crashes() {
    for method in [Method::Forward, Method::Ask, Method::Announce] {
        sound(three([&[], &[1], &[]], method, true));
        sound(three([&[1], &[2], &[]], method, true));
        sound(three([&[], &[1, 2], &[]], method, true));
    }
    sound(three([&[1], &[2], &[3]], Method::Forward, true));
}

#[test]
#[ignore = "too long for every change: 1.5 million states, a minute, and the other method is \
            explored above; cargo test -p conformance --test it groups -- --ignored"]
fn three_members_that_ask_or_announce_agree_whoever_crashes() {
    for method in [Method::Ask, Method::Announce] {
        sound(three([&[1], &[2], &[3]], method, true));
    }
}

#[test]
fn three_members_agree_on_the_order_of_three_broadcasts() {
    for method in [Method::Forward, Method::Ask, Method::Announce] {
        sound(three([&[1], &[2], &[3]], method, false));
    }
}

#[test]
fn planted_bugs_are_caught() {
    let one = || three([&[1], &[], &[]], Method::Forward, true);
    let other = || three([&[], &[1], &[]], Method::Forward, true);
    caught(GroupBug::HideHistory, GroupFault::Refused, one());
    caught(GroupBug::LoseGathered, GroupFault::NotUniform, one());
    caught(GroupBug::ForgetOwn, GroupFault::NotUniform, other());
    let two = three([&[1, 2], &[], &[]], Method::Forward, false);
    caught(GroupBug::NumberAlike, GroupFault::OutOfOrder, two);
}
