//! The parts that differ between the shipped build, the strict-provenance build and the loom build.
//!
//! Everything above this module is written once, over a [`Word`] (the address of a callback, one word with a niche), a
//! [`WordCell`] (an atomic `Option<Word>`), an atomic number, memory for nodes, and an `Arc`.
//!
//! | build | `Word` | `WordCell` |
//! |---|---|---|
//! | shipped | `NonZeroUsize`, an exposed address | crossbeam's `AtomicCell<Option<Word>>` |
//! | `--cfg callback_slot_strict_provenance` | `NonNull<()>` | `core`'s `AtomicPtr` |
//! | `--cfg callback_slot_loom` | `NonNull<()>` | loom's `AtomicPtr` |

#[cfg(not(any(callback_slot_loom, callback_slot_strict_provenance)))]
mod exposed;
#[cfg(any(callback_slot_loom, callback_slot_strict_provenance))]
mod pointer;

mod cell;
pub(crate) mod heap;

#[cfg(not(any(callback_slot_loom, callback_slot_strict_provenance)))]
pub(crate) use self::exposed::{Word, WordCell};
#[cfg(any(callback_slot_loom, callback_slot_strict_provenance))]
pub(crate) use self::pointer::{Word, WordCell};

pub(crate) use self::cell::UnsafeCell;

#[cfg(not(callback_slot_loom))]
pub(crate) use core::sync::atomic::AtomicUsize;
#[cfg(callback_slot_loom)]
pub(crate) use loom::sync::atomic::AtomicUsize;

#[cfg(all(any(feature = "wait", feature = "future"), not(callback_slot_loom)))]
pub(crate) use alloc::sync::Arc;
#[cfg(all(any(feature = "wait", feature = "future"), callback_slot_loom))]
pub(crate) use loom::sync::Arc;

/// Defines a function that is `const`, except under loom, whose atomics have no `const` constructor.
macro_rules! const_unless_loom {
    ($(#[$meta:meta])* $vis:vis const fn $name:ident($($arg:ident: $ty:ty),*) -> $ret:ty $body:block) => {
        $(#[$meta])*
        #[cfg(not(callback_slot_loom))]
        $vis const fn $name($($arg: $ty),*) -> $ret $body

        $(#[$meta])*
        #[cfg(callback_slot_loom)]
        $vis fn $name($($arg: $ty),*) -> $ret $body
    };
}
pub(crate) use const_unless_loom;

/// An ordering, or a weaker one when the build asks for that mutation by name (`mutations.sh`).
macro_rules! ordering {
    ($ordering:ident, $mutation:literal => $weaker:ident) => {
        if cfg!(callback_slot_mutation = $mutation) {
            core::sync::atomic::Ordering::$weaker
        } else {
            core::sync::atomic::Ordering::$ordering
        }
    };
}
pub(crate) use ordering;
