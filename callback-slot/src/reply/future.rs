//! Waiting for a reply in async code, on any executor.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use super::waiter::Waiter;
use super::{Dropped, Reply};

/// Resolves to the value, or to [`Dropped`] if the callback was dropped uncalled.
///
/// Each poll that finds no answer registers its waker anew, in place of the one before. A reply that has given its value
/// away and is polled again says [`Dropped`].
///
/// A reply is `Unpin`, so `&mut reply` can be polled too, in a `select` or under a timeout: if something else comes first, the
/// reply is as it was.
///
/// # Examples
///
/// ```
/// # use std::{future::Future, pin::pin, sync::Arc, task::{Context, Poll, Wake, Waker}};
/// # struct Executor;
/// # impl Wake for Executor {
/// #     fn wake(self: Arc<Self>) {}
/// # }
/// let (callback, reply) = callback_slot::reply();
/// let mut reply = pin!(reply);
/// let waker = Waker::from(Arc::new(Executor));
/// let mut context = Context::from_waker(&waker);
///
/// assert!(reply.as_mut().poll(&mut context).is_pending());
/// callback.call(7);
/// assert_eq!(reply.as_mut().poll(&mut context), Poll::Ready(Ok(7)));
/// ```
#[cfg_attr(docsrs, doc(cfg(feature = "future")))]
impl<T> Future for Reply<T> {
    type Output = Result<T, Dropped>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if !self.handoff.is_rung() {
            self.handoff.register(Waiter::Task(context.waker().clone()));
        }
        self.handoff.answer().map_or(Poll::Pending, Poll::Ready)
    }
}
