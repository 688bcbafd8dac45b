//! One region of an open store: its range, how far it is, who leads it, and who belongs to its group.

use std::time::Duration;

use callback_slot::{Reply, WaitError};

use crate::{
    apply::state::load_membership,
    command::{Gc, Request},
    error::{Cause, Error, Outcome},
    local_reader::RegionReader,
    mailbox::Refused,
    members::{MemberChange, MemberChangeRefused, Members},
    raftstore::{msg::ChangeMembers, status::ReplicaStatus},
    region::{FIRST_REGION, Region, RegionContext, RegionEpoch, Regions},
    storage::Storage,
    threads,
};

/// One region of an open store, which [`Storage::region`] and [`Storage::regions`] hand out.
///
/// ```
/// use storage_pipeline::{Config, Error, Outcome, Storage, command::RawScan};
/// let dir = tempfile::tempdir()?;
/// let mut config = Config::new(dir.path());
/// config.split_keys = vec![b"m".to_vec()];
/// let storage = Storage::open(config)?;
/// storage.raw_put(b"apple", b"1").into_result()?;
/// storage.raw_put(b"pear", b"2").into_result()?;
/// let applied: Vec<_> = storage.regions().map(|region| region.applied_index()).collect();
/// assert_eq!(applied, [2, 2], "in each the leader's own entry and one put");
///
/// // A command is for one region, so a scan of both is two.
/// let scan = |start: &[u8], end: &[u8]| RawScan {
///     start_key: start.to_vec(),
///     end_key: end.to_vec(),
///     limit: 10,
///     reverse: false,
///     key_only: false,
/// };
/// let refused = storage.execute(scan(b"a", b"z"));
/// assert!(matches!(refused, Outcome::NotExecuted(Error::KeyNotInRegion { region: 1, .. })));
/// let mut found = 0;
/// for region in storage.regions() {
///     let range = region.range();
///     found += storage.execute(scan(&range.start_key, &range.end_key)).into_result()?.len();
/// }
/// assert_eq!(found, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct StoreRegion<'a> {
    storage: &'a Storage,
    /// Its place among the regions.
    at: usize,
}

impl Storage {
    /// All regions, in the order of their keys.
    pub fn regions(&self) -> impl Iterator<Item = StoreRegion<'_>> {
        (0..self.0.status.len()).map(|at| StoreRegion { storage: self, at })
    }

    /// The region with this id, if there is one.
    #[must_use]
    pub fn region(&self, id: u64) -> Option<StoreRegion<'_>> {
        self.place_of(id).map(|at| StoreRegion { storage: self, at })
    }

    /// The region that a key belongs to.
    #[must_use]
    pub fn region_of(&self, key: &[u8]) -> StoreRegion<'_> {
        let id = self.0.scheduler.regions.of_key(key).id;
        StoreRegion { storage: self, at: (id - FIRST_REGION) as usize }
    }

    pub(crate) fn all_regions(&self) -> &Regions {
        &self.0.scheduler.regions
    }

    /// Runs a command for a region that it names, in the epoch that it names or not at all, and calls back with its outcome,
    /// within this time. A command that has no keys has to name its region where there are several.
    ///
    /// ```
    /// use std::{sync::mpsc, time::Duration};
    /// use storage_pipeline::{Config, Error, Outcome, Storage, command::RawGet};
    /// use storage_pipeline::region::{RegionContext, RegionEpoch};
    /// let dir = tempfile::tempdir()?;
    /// let storage = Storage::open(Config::new(dir.path()))?;
    /// let old = RegionEpoch { conf_ver: 9, version: 1 };
    /// let (sender, answer) = mpsc::channel();
    /// let named = RegionContext { id: 1, epoch: Some(old) };
    /// storage.submit_in(named, RawGet { key: b"k".to_vec() }, Duration::from_secs(5), move |outcome| {
    ///     sender.send(outcome).expect("somebody waits");
    /// });
    /// let Outcome::NotExecuted(Error::EpochNotMatch(current)) = answer.recv()? else { panic!("it is stale") };
    /// assert_eq!(current.epoch, storage.regions().next().expect("one at least").epoch()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn submit_in<R: Request>(
        &self,
        named: RegionContext,
        request: R,
        timeout: Duration,
        callback: impl FnOnce(Outcome<R::Output>) + Send + 'static,
    ) {
        self.submit_named(request, Some(named), timeout, callback);
    }

    /// Runs a command for a region that it names and waits for its outcome, at most the default timeout. As
    /// [`submit_in`](Self::submit_in); where it may wait, as [`execute`](Self::execute).
    pub fn execute_in<R: Request>(&self, named: RegionContext, request: R) -> Outcome<R::Output> {
        if threads::is_pipeline() {
            return Outcome::NotExecuted(Error::WouldBlockPipeline);
        }
        let (callback, reply) = callback_slot::reply();
        self.submit_in(named, request, self.default_timeout(), move |outcome| callback.call(outcome));
        reply.wait().expect("a callback runs exactly once, whatever becomes of its command")
    }

    /// Raises the safe point of every region, one after the other, the first one first: that one knows which timestamps were
    /// given out. Reads below it are refused from then on; nothing is removed, which is done with [`Gc`] and the keys of
    /// [`ScanGcKeys`](crate::command::ScanGcKeys). Returns the lowest safe point that a region has now. What is not applied in
    /// one region is not tried in the later ones, and may be repeated.
    pub fn raise_safe_point(&self, safe_point: u64) -> Outcome<u64> {
        let mut lowest = u64::MAX;
        for region in self.regions() {
            let named = RegionContext { id: region.range().id, epoch: None };
            match self.execute_in(named, Gc { safe_point, keys: Vec::new() }) {
                Outcome::Applied(raised) => lowest = lowest.min(raised.safe_point),
                Outcome::NotExecuted(error) => return Outcome::NotExecuted(error),
                Outcome::Indeterminate(cause) => return Outcome::Indeterminate(cause),
            }
        }
        Outcome::Applied(lowest)
    }

    pub(super) fn first_region(&self) -> StoreRegion<'_> {
        StoreRegion { storage: self, at: 0 }
    }

    pub(super) fn place_of(&self, region: u64) -> Option<usize> {
        let at = usize::try_from(region.checked_sub(FIRST_REGION)?).ok()?;
        Some(at).filter(|at| *at < self.0.status.len())
    }
}

impl<'a> StoreRegion<'a> {
    /// Its id and its range of keys.
    #[must_use]
    pub fn range(&self) -> &'a Region {
        &self.storage.0.scheduler.regions.all()[self.at]
    }

    /// Its epoch, as far as this replica has applied changes of its members.
    ///
    /// # Errors
    /// The data engine's refusal, or [`Error::Corrupt`].
    pub fn epoch(&self) -> Result<RegionEpoch, Error> {
        let stored = load_membership(&*self.reader().engine.snapshot())?.unwrap_or_default();
        Ok(RegionEpoch { conf_ver: stored.conf_ver, ..RegionEpoch::default() })
    }

    /// What this replica knows of the region's group.
    #[must_use]
    pub fn status(&self) -> ReplicaStatus {
        self.storage.0.status[self.at].get()
    }

    /// Index of the last applied entry of its log.
    #[must_use]
    pub fn applied_index(&self) -> u64 {
        self.storage.0.applied_index(self.at)
    }

    fn reader(&self) -> &RegionReader {
        &self.storage.0.scheduler.reader.regions[self.at]
    }

    /// Asks a voter to take over the leadership, if this replica has it. Returns at once, before anything has come of it;
    /// [`status`](Self::status) shows who leads. Writes are refused as [`NotLeader`](crate::Error::NotLeader) meanwhile.
    /// Where nothing comes of it within an election timeout, this replica goes on leading.
    pub fn transfer_leader(&self, to: u64) {
        self.reader().router.transfer_leader(to);
    }

    /// Changes who belongs to the group, and waits for that at most [`Config::default_timeout`](crate::Config::default_timeout).
    /// Only the leader can do it, one change after the other. Several replicas may change at once: then a majority of the old
    /// voters and one of the new are needed until all have changed, and the answer comes when only the new ones count.
    ///
    /// *Applied* says that whoever has no vote any more may be switched off for good: a majority of those who vote knows that,
    /// and will after a power loss. [`members`](Self::members) say only what is applied.
    ///
    /// A replica that is to join is opened with the same [`Config::voters`](crate::Config::voters) as all others, and gets
    /// what it lacks. A leader that loses its own vote leads until the others know that, and tells one of them to take over.
    ///
    /// What is refused is *not executed*, with [`Error::MemberChange`] where the change makes no sense now.
    pub fn change_members(&self, changes: &[MemberChange]) -> Outcome<Members> {
        if threads::is_pipeline() {
            return Outcome::NotExecuted(Error::WouldBlockPipeline);
        }
        let timeout = self.storage.default_timeout();
        match self.wish_members(changes).map(|reply| reply.wait_timeout(timeout)) {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(WaitError::TimedOut(_))) => Outcome::Indeterminate(Cause::DeadlineExceeded),
            Ok(Err(WaitError::Dropped)) => Outcome::Indeterminate(Cause::Closed),
            Err(error) => Outcome::NotExecuted(error),
        }
    }

    /// Wishes for a change of members, whose outcome comes later.
    ///
    /// # Errors
    /// Why it is not even wished for.
    pub(crate) fn wish_members(&self, changes: &[MemberChange]) -> Result<Reply<Outcome<Members>>, Error> {
        if self.storage.0.is_alone {
            return Err(Error::MemberChange(MemberChangeRefused::Alone));
        }
        let (callback, reply) = callback_slot::reply();
        let wish = ChangeMembers { changes: changes.to_vec(), callback };
        match self.reader().router.change_members(wish) {
            Ok(()) => Ok(reply),
            Err(Refused::Full(_)) => Err(Error::SchedTooBusy),
            Err(Refused::Closed(_)) => Err(self.storage.0.scheduler.refusal()),
        }
    }

    /// The members, as far as this replica has applied changes of them.
    ///
    /// # Errors
    /// The data engine's refusal, or [`Error::Corrupt`].
    pub fn members(&self) -> Result<Members, Error> {
        let stored = load_membership(&*self.reader().engine.snapshot())?;
        Ok(stored.map(|stored| Members::from(&stored.members)).unwrap_or_else(|| {
            let voters = self.storage.0.scheduler.config.voters.iter().copied().collect();
            Members { voters, ..Members::default() }
        }))
    }
}
