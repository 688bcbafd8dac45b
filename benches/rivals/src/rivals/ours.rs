//! This project's slots.

use callback_slot::{CallbackSlot, InPlaceSlot, SharedSlot};

use crate::{
    contender::{Poll, Slot},
    work::Closure,
};

/// The slot in place with room for `WORDS` captured words.
pub type InPlace<const WORDS: usize> = InPlaceSlot<u64, WORDS>;

macro_rules! ours {
    ([$($generics:tt)*] $slot:ty) => {
        impl<$($generics)*> Slot for $slot {
            #[inline(always)]
            fn armed<F: Closure>(closure: F) -> Self {
                Self::new(closure)
            }

            #[inline(always)]
            fn complete(&self, value: u64) -> bool {
                self.complete(value).is_ok()
            }

            #[inline(always)]
            fn must_call<F: Closure, G: FnOnce() -> u64 + Send + 'static>(closure: F, fallback: G) -> Self {
                Self::must_call(closure, fallback)
            }
        }

        impl<$($generics)*> Poll for $slot {
            #[inline(always)]
            fn is_armed(&self) -> bool {
                self.is_armed()
            }
        }
    };
}

ours!([] CallbackSlot<u64>);
ours!([] SharedSlot<u64>);
ours!([const WORDS: usize] InPlaceSlot<u64, WORDS>);
