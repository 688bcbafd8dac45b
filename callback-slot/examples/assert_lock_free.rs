//! Asserting, when compiling and when starting, that one's own callback type fits a lock-free cell.

use callback_slot::{assert_lock_free, is_lock_free, Callback};
use crossbeam_utils::atomic::AtomicCell;

/// A callback with a name of its own.
struct WriteCallback(Callback<Result<u64, String>>);

/// What one might write first: two words and a tag.
enum BoxedCallback {
    #[expect(dead_code, reason = "only its size matters here")]
    Write(Box<dyn FnOnce(Result<u64, String>) + Send>),
}

// A change that makes the type wider stops the build here.
assert_lock_free!(Option<WriteCallback>);

fn main() {
    // And a build for a target without wide enough atomics stops when it starts.
    callback_slot::assert_lock_free::<Option<WriteCallback>>();

    let cell = AtomicCell::new(Some(WriteCallback(Callback::new(|outcome| println!("{outcome:?}")))));
    if let Some(WriteCallback(callback)) = cell.take() {
        callback.call(Ok(7));
    }

    println!("Option<WriteCallback>: {} bytes, lock-free", size_of::<Option<WriteCallback>>());
    println!("Option<BoxedCallback>: {} bytes, behind a lock", size_of::<Option<BoxedCallback>>());
    assert!(!is_lock_free::<Option<BoxedCallback>>());
}
