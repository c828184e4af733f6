use std::sync::Arc;

use dhole_group::Body;

#[test]
fn what_was_cut_is_joined_again() {
    let whole: Arc<[u8]> = (0..10).collect();
    let parts = vec![whole.cut(0..4), whole.cut(4..8), whole.cut(8..12)];
    assert_eq!(parts[2].len(), 2);
    assert_eq!(Body::join(parts), Some(whole));
}
