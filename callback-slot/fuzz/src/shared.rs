//! Shared slots: handles, and the groups that share one.

use callback_slot::SharedSlot;

use crate::ledger::{Planned, Token};
use crate::make::{self, NewShared};
use crate::model::{Place, Task};
use crate::op::{How, Kind};
use crate::planned;
use crate::world::{complete, Held, World};

/// So many handles at most: more would only make the programs slower.
const MAX_HANDLES: usize = 32;

#[derive(Default)]
pub(crate) struct Handles {
    /// Each with the number of its group.
    handles: Vec<(SharedSlot<Token>, usize)>,
    /// How many handles, and what their slot holds.
    groups: Vec<(usize, Place)>,
}

impl Handles {
    pub(crate) fn len(&self) -> usize {
        self.handles.len()
    }

    fn open(&mut self, slot: SharedSlot<Token>, task: Task) {
        self.handles.push((slot, self.groups.len()));
        self.groups.push((1, Place::Armed(task)));
    }
}

impl World {
    pub(crate) fn shared_new(&mut self, kind: Kind) {
        if self.shared.len() < MAX_HANDLES {
            let (id, task) = self.model.open(kind);
            self.shared.open(make::make(NewShared, id, kind), task);
        }
    }

    pub(crate) fn shared_from(&mut self, at: usize) {
        if self.shared.len() < MAX_HANDLES {
            if let Some(Held { callback, task }) = self.pick(at) {
                self.shared.open(SharedSlot::from(callback), task);
            }
        }
    }

    pub(crate) fn shared_clone(&mut self, at: usize) {
        let len = self.shared.len();
        if (1..MAX_HANDLES).contains(&len) {
            let (handle, group) = &self.shared.handles[at % len];
            let further = (handle.clone(), *group);
            self.shared.groups[*group].0 += 1;
            self.shared.handles.push(further);
        }
    }

    pub(crate) fn shared_complete(&mut self, at: usize, how: How) {
        if self.shared.len() == 0 {
            return;
        }
        let at = at % self.shared.len();
        let (number, group) = (self.number(), self.shared.handles[at].1);
        let before = self.shared.groups[group].1;
        let task = self.shared.groups[group].1.take();
        let panics = self.expect(task, number, how);
        let handle = &self.shared.handles[at].0;
        assert_eq!(handle.is_armed(), before.is_armed());
        complete!(handle, how, number, before, panics);
        assert!(!handle.is_armed());
    }

    pub(crate) fn shared_drop(&mut self, at: usize) {
        if self.shared.len() == 0 {
            return;
        }
        let (handle, group) = self.shared.handles.swap_remove(at % self.shared.len());
        let (handles, place) = &mut self.shared.groups[group];
        *handles -= 1;
        if *handles == 0 {
            if let Some(task) = place.take() {
                self.model.dropped(task);
            }
        }
        drop(handle);
    }
}
