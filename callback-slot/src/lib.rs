//! A one-shot slot for a callback, in one lock-free word: many may try to tell the caller, exactly one does.
//!
//! A write in a storage engine crosses many threads, and several of them may learn its outcome: the scheduler that gives
//! up, the timer that expires, the apply pool that succeeds. Each holds the same slot and completes it as soon as it
//! knows. The first one runs the caller's callback, there and then; all others get their value back.
//!
//! ```
//! use callback_slot::SharedSlot;
//! use std::{sync::mpsc, thread};
//!
//! let (told, caller) = mpsc::channel();
//! let scheduler = SharedSlot::must_call(
//!     move |outcome: Result<u64, &str>| told.send(outcome).unwrap(),
//!     || Err("dropped on the way"),
//! );
//! let proposal = scheduler.clone();
//!
//! let apply_pool = thread::spawn(move || proposal.complete(Ok(7)).is_ok());
//! let timed_out = scheduler.complete(Err("timed out")).is_ok();
//!
//! assert!(timed_out != apply_pool.join().unwrap(), "exactly one of them told the caller");
//! assert_eq!(caller.recv().unwrap().is_err(), timed_out);
//! ```
//!
//! # Which form when
//!
//! | you have | use | costs |
//! |---|---|---|
//! | a callback with one owner at a time | [`Callback`] | one word; one allocation, none if zero-sized |
//! | several owners, each of which may finish it | [`SharedSlot`] | one allocation for count, slot and closure |
//! | one object that several threads can reach, or a `static` | [`CallbackSlot`] in it | one word, and the callback |
//! | such an object, and no allocation to spare | [`InPlaceSlot`] in it | one word and the room for the captures |
//! | a caller who would rather block or await | [`reply`], and its callback in any slot | one allocation |
//! | a `Box` or an `Arc` to pass on, again and again | [`OptionCell`] | one word, and the value |
//!
//! All are one idea: a word that stands for something owned, and a swap that gives it to exactly one. A callback and each
//! form of slot can be made by `must_call`, with a fallback for the case that every owner goes away: then the callback runs
//! all the same.
//!
//! A oneshot channel is better when there is one sender, and when the receiver has nothing better to do than to wait.
//! A callback runs on the thread that completes it: it should be short and must not block, or it holds up the
//! pool that told it.
//!
//! # Promises
//!
//! * **Exactly one.** Of all operations that can empty a slot, by any number of threads, one wins.
//! * **Visible.** What happened before the slot was armed, and before the call that completed it, is visible in the
//!   callback; what any owner did is visible to the destructor or the fallback that runs when the last owner goes.
//! * **Wait-free.** A bounded number of atomic steps for each operation, whatever others do: no lock, no spinning, no
//!   spurious failure. [`CallbackSlot::is_lock_free`], [`assert_lock_free!`] and [`assert_lock_free()`] check it.
//! * **Nothing is borrowed** and nothing is held while user code runs or is dropped: it may call its own slot, and it may
//!   panic. The slot is DONE then, nothing leaks, and nothing runs twice.
//! * **No panics** of the crate's own, except the assertion that is one. `SharedSlot::clone` aborts when the count of
//!   handles would overflow, as `Arc` does.
//!
//! How each is derived, and which test checks it, is in [`soundness`]. What replaces a mutex, crossbeam's `AtomicOption` or a
//! oneshot channel, call by call, is in [`migration`].
//!
//! # Drops, panics and re-entry
//!
//! | what happens | what follows |
//! |---|---|
//! | a callback, or a slot with one in it, is dropped | what was captured is dropped there and then; a must-call runs with its fallback's value |
//! | one handle of several is dropped | nothing, until the last one goes |
//! | a callback or a slot is forgotten ([`mem::forget`](core::mem::forget)) | a leak; even a must-call stays silent |
//! | the callback panics, or the destructor of what it captured or was given | the panic is that of whoever completed or dropped it, or is returned by a catching call |
//! | the builder of `complete_with` panics | the same, and the callback is dropped, or falls back |
//! | a must-call that was dropped panics, in its fallback or in its closure | with `std` it is caught and counted, see `fallback_panics`; without, it goes on |
//! | a reply is dropped before its callback is called | the value is dropped by whoever calls |
//! | callback, builder, value or destructor use the slot they came from | they find it DONE |
//!
//! Each time the slot ends DONE, or is gone; memory is given back unless something was forgotten; nothing runs twice.
//!
//! # Features
//!
//! | feature | adds | needs |
//! |---|---|---|
//! | (none) | everything in the table but `reply` | `core` and `alloc` |
//! | `std` | catching calls; a panic in a must-call's fallback is caught and counted | `std` |
//! | `wait` | `reply`, `Reply::wait` and `Reply::wait_timeout` | `std`, which it turns on |
//! | `future` | `reply`, `Reply` as a `Future` | `core` and `alloc` |
//!
//! A target needs atomics as wide as a pointer. The minimum supported Rust version is 1.84, the first with exposed
//! provenance; raising it is a minor version.
//!
//! # Under loom
//!
//! With `--cfg callback_slot_loom` in `RUSTFLAGS` the same API runs on [loom]'s atomics, so a project can model its own
//! hand-over through it. `CallbackSlot::empty` and its likes are not `const` then, and `Reply::wait_timeout` is absent.
//!
//! [loom]: https://docs.rs/loom
#![cfg_attr(not(any(feature = "wait", feature = "future")), doc = "[`reply`]: #features")]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]
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

#[cfg(doc)]
#[doc = include_str!("../docs/soundness.md")]
pub mod soundness {}

#[cfg(doc)]
#[doc = include_str!("../docs/migration.md")]
pub mod migration {}

// The README's examples are compiled and run like all others.
#[cfg(all(doctest, feature = "std"))]
#[doc = include_str!("../README.md")]
struct Readme;
