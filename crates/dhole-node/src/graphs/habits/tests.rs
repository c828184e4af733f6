use super::*;

/// Habits of a line at which references in slot 1 of type 7 were followed as often as it takes.
fn taught() -> (Habits, (u8, u8)) {
    let mut habits = Habits::default();
    let at = habits.place(7, 1).expect("room");
    habits.missed(at);
    assert!(habits.follow().is_none(), "once may be by chance");
    habits.missed(at);
    (habits, at)
}

#[test]
fn references_that_were_followed_twice_are_followed() {
    let (habits, _) = taught();
    let follow = habits.follow();
    assert_eq!(follow.most, FIRST);
    let followed = [(7, 1), (7, 0), (8, 1)].map(|(ty, slot)| follow.follows(Some(ty), slot));
    assert_eq!(followed, [true, false, false]);
    assert!(!follow.follows(None, 1), "a type without a name");
}

#[test]
fn more_come_along_as_long_as_they_are_read_and_fewer_where_they_are_not() {
    let (mut habits, at) = taught();
    let mut judged = |read| {
        (0..JUDGED).for_each(|_| habits.came(at, read));
        habits.follow().most
    };
    assert_eq!([true; 3].map(&mut judged), [128, 256, 256]);
    assert_eq!(judged(false), 128);
}

#[test]
fn what_is_not_read_is_unlearned_and_takes_more_to_be_learned_again() {
    let (mut habits, at) = taught();
    let mut expected = usize::from(TAUGHT);
    for _ in 0..6 {
        (0..JUDGED).for_each(|_| habits.came(at, false));
        assert!(habits.follow().is_none());
        expected = (4 * expected).min(usize::from(MOST_TAUGHT));
        let misses = (1..).find(|_| {
            habits.missed(at);
            !habits.follow().is_none()
        });
        assert_eq!(misses, Some(expected));
    }
    assert_eq!(habits.follow().most, LEAST);
}

#[test]
fn one_in_four_is_enough() {
    let (mut habits, at) = taught();
    (0..400).for_each(|i| habits.came(at, i % 4 == 0));
    assert!(habits.follow().follows(Some(7), 1));
}

#[test]
fn no_more_types_and_slots_are_learned_than_a_message_names() {
    let mut habits = Habits::default();
    for ty in 0..Follow::MOST_TYPES as u32 {
        assert!(habits.place(ty, 0).is_some());
    }
    assert_eq!(habits.place(1000, 0), None);
    assert_eq!(habits.place(0, FollowedReferences::SLOTS), None);
    assert!(habits.place(0, FollowedReferences::SLOTS - 1).is_some());
}

#[test]
fn what_comes_ahead_and_is_not_read_is_left_out_for_a_while_that_grows() {
    let mut habits = Habits::default();
    assert_eq!(habits.reads_ahead(), Some(Pays::Enough));
    let mut comes = |one_in: u8| {
        (0..JUDGED).for_each(|i| habits.came_ahead(i % one_in == 0));
        let pays = (1..).find_map(|misses| Some((misses, habits.reads_ahead()?)));
        let (misses, pays) = pays.expect("a pause ends");
        (misses, pays == Pays::Well)
    };
    let read = [1, 2, 4].map(&mut comes);
    assert_eq!(
        read,
        [(1, true), (1, false), (1, false)],
        "a quarter is enough"
    );
    let unread = [8; 3].map(&mut comes);
    assert_eq!(unread, [(64, false), (256, false), (1024, false)]);
    assert_eq!([4, 8].map(&mut comes), [(1, false), (64, false)]);
    assert_eq!([8; 6].map(&mut comes)[5].0, usize::from(MOST_PAUSE));
}
