//! A lock-free one-shot callback slot.
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod primitive;
mod unwind;
mod task;
mod raw;
mod state;
mod complete;
mod lock_free;
mod callback;
mod slot;
mod shared;
mod in_place;
mod option_cell;
#[cfg(any(feature = "wait", feature = "future"))]
mod reply;

pub use self::callback::Callback;
#[cfg(feature = "std")]
pub use self::complete::CallOutcome;
pub use self::complete::CompleteError;
pub use self::in_place::InPlaceSlot;
pub use self::lock_free::{assert_lock_free, is_lock_free};
pub use self::option_cell::{OneWord, OptionCell};
#[cfg(feature = "wait")]
pub use self::reply::WaitError;
#[cfg(any(feature = "wait", feature = "future"))]
pub use self::reply::{reply, Dropped, Reply};
pub use self::shared::SharedSlot;
pub use self::slot::CallbackSlot;
#[cfg(feature = "std")]
pub use self::unwind::fallback_panics;
