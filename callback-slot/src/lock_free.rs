//! Asserting that a type fits an `AtomicCell` without locks, when compiling and when a process starts.

use crossbeam_utils::atomic::AtomicCell;
use static_assertions::{assert_eq_size, const_assert};

use crate::callback::Callback;
use crate::primitive::Word;

const_assert!(is_lock_free::<Option<Word>>());
const_assert!(is_lock_free::<Option<Callback<()>>>());
assert_eq_size!(Option<Word>, usize);
assert_eq_size!(Option<Callback<[u64; 9]>>, usize);
assert_eq_size!(AtomicCell<Option<Callback<()>>>, usize);

/// Whether an `AtomicCell<V>` of crossbeam's works without locks.
///
/// A cell that is too wide for the target's atomics falls back, silently, to one of 67 locks that all such cells of the
/// process share.
///
/// Under Miri the answer is by size and alignment, up to a word: newer versions of crossbeam-utils use their fallback there.
///
/// # Examples
///
/// ```
/// use callback_slot::{is_lock_free, Callback};
///
/// assert!(is_lock_free::<Option<Callback<u64>>>());
/// assert!(!is_lock_free::<Option<Box<dyn FnOnce(u64) + Send>>>(), "two words");
/// ```
#[must_use]
pub const fn is_lock_free<V>() -> bool {
    if cfg!(miri) {
        has_shape_of_atomic::<V>()
    } else {
        AtomicCell::<V>::is_lock_free()
    }
}

/// Whether `V` could be an atomic of the target, up to a word.
const fn has_shape_of_atomic<V>() -> bool {
    let (size, align) = (size_of::<V>(), align_of::<V>());
    matches!(size, 0 | 1 | 2 | 4 | 8) && size <= size_of::<usize>() && align >= size
}

/// Checks [`is_lock_free`] while a process starts, so that a build for an odd target says so at once.
///
/// # Panics
///
/// If an `AtomicCell<V>` would use locks. The message names the type.
///
/// # Examples
///
/// ```
/// callback_slot::assert_lock_free::<Option<callback_slot::Callback<u64>>>();
/// ```
#[track_caller]
pub fn assert_lock_free<V>() {
    assert!(
        is_lock_free::<V>(),
        "AtomicCell<{}> is not lock-free on this target",
        core::any::type_name::<V>()
    );
}

/// Refuses to compile unless an `AtomicCell` of each given type is lock-free.
///
/// # Examples
///
/// One's own callback type, kept in one word:
///
/// ```
/// use callback_slot::{assert_lock_free, Callback};
///
/// struct WriteCallback(Callback<Result<u64, String>>);
///
/// assert_lock_free!(Option<WriteCallback>);
/// ```
///
/// A boxed closure is a pointer and a vtable, two words, and is refused:
///
/// ```compile_fail,E0080
/// callback_slot::assert_lock_free!(Option<Box<dyn FnOnce(u64) + Send>>);
/// ```
///
/// So is an enum of boxed closures:
///
/// ```compile_fail,E0080
/// enum StorageCallback {
///     Get(Box<dyn FnOnce(u64) + Send>),
///     Put(Box<dyn FnOnce() + Send>),
/// }
/// callback_slot::assert_lock_free!(Option<StorageCallback>);
/// ```
#[macro_export]
macro_rules! assert_lock_free {
    ($($type:ty),+ $(,)?) => {
        $(const _: () = ::core::assert!(
            $crate::is_lock_free::<$type>(),
            ::core::concat!("AtomicCell<", ::core::stringify!($type), "> is not lock-free"),
        );)+
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Miri is told is what holds on a real machine.
    #[test]
    fn shape_of_atomic_says_what_the_cell_says() {
        fn check<V>(expected: bool) {
            assert_eq!(has_shape_of_atomic::<V>(), expected, "{}", core::any::type_name::<V>());
            #[cfg(not(miri))]
            assert_eq!(AtomicCell::<V>::is_lock_free(), expected, "{}", core::any::type_name::<V>());
        }
        check::<()>(true);
        check::<u8>(true);
        check::<[u8; 2]>(false);
        check::<[u8; 3]>(false);
        check::<u32>(true);
        check::<[u16; 2]>(false);
        check::<usize>(true);
        check::<Option<Callback<u64>>>(true);
        check::<[u8; size_of::<usize>()]>(false);
        check::<[usize; 2]>(false);
    }
}
