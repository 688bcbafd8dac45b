//! From callbacks to async and back: a storage engine that calls back, awaited by code that does not know it.

use callback_slot::{reply, Callback};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

/// An engine with a callback for an interface.
fn put(key: &'static str, done: Callback<String>) {
    thread::spawn(move || done.call(format!("{key} is written")));
}

/// The same as an async function.
async fn put_async(key: &'static str) -> Option<String> {
    let (done, written) = reply();
    put(key, done);
    written.await.ok()
}

/// The smallest executor there is; any other does as well.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

fn main() {
    let both = async { (put_async("a").await, put_async("b").await) };
    let answers = block_on(both);
    println!("{answers:?}");
    assert_eq!(answers, (Some("a is written".into()), Some("b is written".into())));
}
