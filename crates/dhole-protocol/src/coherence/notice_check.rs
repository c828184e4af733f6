//! What others say to have written and freed, before a node believes it: whether it follows on what
//! is known without a gap, and whether it is no more than a node keeps in mind.

use dhole_model::{CHUNK, NodeId, OidRange};

use super::Protocols;
use crate::error::ProtocolError;
use crate::sync::notice_delta::Record;
use crate::{Interval, WriteNotices};

impl Protocols {
    /// What a releaser tells of that is news here, whole, if it follows on what is known without
    /// a gap.
    pub fn check(&self, from: NodeId, news: &WriteNotices) -> Result<Vec<Record>, ProtocolError> {
        let bad = |what| ProtocolError::BadMessage { from, what };
        self.treadmarks.check_news(news).map_err(bad)?;
        let records = self.intervals.check(news).map_err(bad)?;
        self.check_room(from, records.iter().map(|record| &*record.whole))?;
        Ok(records)
    }

    /// Whether what a node tells at a barrier are its own intervals, without a gap, and no more of
    /// ours than there are. What its processes did since may have been seen here before.
    pub fn check_own(&self, from: NodeId, news: &WriteNotices) -> Result<(), ProtocolError> {
        let bad = |what| ProtocolError::BadMessage { from, what };
        self.treadmarks.check_news(news).map_err(bad)?;
        self.intervals.check_own(from, news).map_err(bad)?;
        self.check_room(from, news.intervals.iter().map(|interval| &**interval))
    }

    /// Whether this node may keep in mind what was written and freed in these intervals.
    fn check_room<'a>(
        &self,
        from: NodeId,
        intervals: impl Iterator<Item = &'a Interval> + Clone,
    ) -> Result<(), ProtocolError> {
        let most = self.most_heard;
        let too_many = |first| Err(ProtocolError::TooManyWritten { from, first, most });
        let freed = intervals.clone().flat_map(|interval| &interval.freed);
        // States are kept of chunks of which a part alone is freed: the first and the last.
        let ends = freed.flat_map(|range| {
            let last = range.last();
            let first = (range.first.slot() != 0).then_some(range.first);
            let last = (last.slot() as u64 != CHUNK - 1).then_some(last);
            first.into_iter().chain(last).map(OidRange::one)
        });
        let written = intervals.clone().flat_map(|interval| &interval.written);
        if let Some(first) = self.objects.exceeds(most, written.copied().chain(ends)) {
            return too_many(first);
        }
        // A message adds at most as many as it has bytes.
        if self.objects.heard_of().max(self.arrays.heard_of()) <= most {
            return Ok(());
        }
        let elements = |interval: &'a Interval| interval.elements.iter().map(|it| it.array);
        let freed = |interval: &'a Interval| interval.freed.iter().map(|it| it.first);
        let mut named = intervals.flat_map(|interval| elements(interval).chain(freed(interval)));
        named.next().map_or(Ok(()), too_many)
    }

    /// Whether so much is known of objects of others that no more is taken unasked.
    pub(super) fn is_full(&self) -> bool {
        self.objects.heard_of() >= self.most_heard
    }
}
