//! Option cells: one of boxes, one of callbacks.

use callback_slot::OptionCell;

use crate::ledger::Token;
use crate::world::{Held, World};

impl World {
    pub(crate) fn box_cell(&mut self, what: usize) {
        let number = self.number();
        let (cell, held) = &mut self.boxes;
        assert_eq!(cell.is_some(), held.is_some());
        let fresh = || Box::new(Token::new(number));
        let (out, expected) = match what % 6 {
            0 => (cell.put(fresh()), held.replace(number)),
            1 => (cell.take(), held.take()),
            2 => (cell.swap(Some(fresh())), held.replace(number)),
            3 => (cell.swap(None), held.take()),
            4 if held.is_some() => (cell.try_put(fresh()).err(), Some(number)),
            4 => (cell.try_put(fresh()).err(), held.replace(number)),
            _ => (std::mem::take(cell).into_inner(), held.take()),
        };
        assert_eq!(out.map(|token| token.number()), expected);
        self.model.in_cells = usize::from(held.is_some());
    }

    pub(crate) fn callback_cell(&mut self, what: usize, at: usize) {
        match what % 4 {
            0 => {
                let Some(Held { callback, task }) = self.pick(at) else { return };
                let old = self.callbacks.0.put(callback);
                let old_task = self.callbacks.1.replace(task);
                self.hold(old, old_task);
            }
            1 => {
                let Some(Held { callback, task }) = self.pick(at) else { return };
                let refused = self.callbacks.0.try_put(callback).err();
                let refused_task =
                    if self.callbacks.1.is_some() { Some(task) } else { self.callbacks.1.replace(task) };
                self.hold(refused, refused_task);
            }
            2 => {
                let taken = self.callbacks.0.take();
                let task = self.callbacks.1.take();
                self.hold(taken, task);
            }
            _ => self.drop_callback_cell(),
        }
    }

    /// Lets all cells go.
    pub(crate) fn close_cells(&mut self) {
        self.drop_callback_cell();
        drop(std::mem::take(&mut self.boxes.0));
        self.boxes.1 = None;
        self.model.in_cells = 0;
    }

    fn drop_callback_cell(&mut self) {
        let old: OptionCell<_> = std::mem::take(&mut self.callbacks.0);
        if let Some(task) = self.callbacks.1.take() {
            self.model.dropped(task);
        }
        drop(old);
    }
}
