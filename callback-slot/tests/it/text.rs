//! What the types print: errors as plain English, and debug forms that need no `Debug` of the value.

use callback_slot::{Callback, CallbackSlot, CompleteError, InPlaceSlot, SharedSlot};

/// Has no `Debug`, as many a value.
struct Silent;

#[test]
fn errors_say_why_and_not_what() {
    let never = CallbackSlot::<Silent>::empty().complete(Silent).unwrap_err();
    assert_eq!(never.to_string(), "the slot was never armed");
    assert_eq!(format!("{never:?}"), "NeverArmed(..)");
    let slot = SharedSlot::new(drop::<Silent>);
    slot.complete(Silent).unwrap();
    let late = slot.complete(Silent).unwrap_err();
    assert_eq!(late.to_string(), "the slot is already completed");
    assert_eq!(format!("{late:?}"), "AlreadyCompleted(..)");
    assert!(matches!(late, CompleteError::AlreadyCompleted(Silent)));
}

#[test]
fn slots_show_their_state() {
    assert_eq!(format!("{:?}", Callback::new(drop::<Silent>)), "Callback(..)");
    let slot = CallbackSlot::empty();
    assert_eq!(format!("{slot:?}"), "CallbackSlot(Empty)");
    slot.arm(Callback::new(drop::<Silent>)).unwrap();
    assert_eq!(format!("{slot:?}"), "CallbackSlot(Armed)");
    slot.complete(Silent).unwrap();
    assert_eq!(format!("{slot:?}"), "CallbackSlot(Done)");
    assert_eq!(format!("{:?}", SharedSlot::new(drop::<Silent>)), "SharedSlot(Armed)");
    assert_eq!(format!("{:?}", InPlaceSlot::<Silent>::empty()), "InPlaceSlot(Empty)");
}

#[cfg(any(feature = "wait", feature = "future"))]
#[test]
fn replies_say_that_there_will_be_none() {
    let (callback, reply) = callback_slot::reply::<Silent>();
    drop(callback);
    let dropped = reply.try_into_value().unwrap().map(|Silent| ()).unwrap_err();
    assert_eq!(dropped.to_string(), "the callback was dropped uncalled");
}

#[cfg(feature = "wait")]
#[test]
fn waiting_says_why_it_ended() {
    use callback_slot::WaitError;
    use std::time::Duration;

    let (callback, reply) = callback_slot::reply::<Silent>();
    let timed_out = reply.wait_timeout(Duration::ZERO).map(|Silent| ()).unwrap_err();
    assert_eq!(timed_out.to_string(), "timed out before the callback was called");
    assert_eq!(format!("{timed_out:?}"), "TimedOut(..)");
    let WaitError::TimedOut(reply) = timed_out else { unreachable!() };
    drop(callback);
    let dropped = reply.wait_timeout(Duration::MAX).map(|Silent| ()).unwrap_err();
    assert_eq!(dropped.to_string(), "the callback was dropped uncalled");
    assert_eq!(format!("{dropped:?}"), "Dropped");
}
