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

/// So many objects come ahead of a thousand misses, one of every so many of which is read.
fn comes(habits: &mut Habits, (way, one_in): (Way, usize)) -> usize {
    let mut came = 0;
    for _ in 0..1000 {
        if habits.reads_ahead().is_some() {
            for _ in 0..16 {
                habits.comes_ahead(way);
                came += 1;
                if came % one_in == 0 {
                    habits.reads_what_came_ahead();
                }
            }
        }
    }
    came
}

#[test]
fn as_much_comes_ahead_in_vain_as_costs_little_beside_the_misses() {
    for (way, enough, in_vain) in [(Way::Message, 3, 5), (Way::Seen, 1, 2)] {
        let mut habits = Habits::default();
        assert_eq!(habits.reads_ahead(), Some(Pays::Enough));
        assert_eq!(comes(&mut habits, (way, enough)), 16_000, "{way:?}");
        assert_eq!(habits.reads_ahead(), Some(Pays::Well));
        // The credit that was left, and what each miss earns.
        comes(&mut habits, (way, usize::MAX));
        let few = comes(&mut habits, (way, usize::MAX));
        assert!((1..=1000 / 16 + 16).contains(&few), "{way:?}: {few}");
        assert_eq!(habits.reads_ahead(), None);
        // A program that reads again what comes is noticed.
        let again = (0..8).map(|_| comes(&mut habits, (way, enough)));
        assert_eq!(again.last(), Some(16_000), "{way:?}");
        let all: usize = (0..20).map(|_| comes(&mut habits, (way, in_vain))).sum();
        assert!(all < 20 * 16_000, "{way:?}: {all}");
    }
}
