//! Callbacks of every kind, for whatever form takes them.

use std::panic;

use callback_slot::{Callback, InPlaceSlot, SharedSlot};

use crate::ledger::{self, Planned, Token};
use crate::model::FALLBACK;
use crate::op::{Kind, Size};
use crate::slots;

/// Something that takes a closure, or a closure and a fallback.
pub(crate) trait Put {
    type Out;
    fn plain(self, closure: impl FnOnce(Token) + Send + 'static) -> Self::Out;
    fn must(
        self,
        closure: impl FnOnce(Token) + Send + 'static,
        fallback: impl FnOnce() -> Token + Send + 'static,
    ) -> Self::Out;
}

macro_rules! put {
    ($name:ident, $out:ty) => {
        pub(crate) struct $name;

        impl Put for $name {
            type Out = $out;

            fn plain(self, closure: impl FnOnce(Token) + Send + 'static) -> $out {
                <$out>::new(closure)
            }

            fn must(
                self,
                closure: impl FnOnce(Token) + Send + 'static,
                fallback: impl FnOnce() -> Token + Send + 'static,
            ) -> $out {
                <$out>::must_call(closure, fallback)
            }
        }
    };
}
put!(NewCallback, Callback<Token>);
put!(NewShared, SharedSlot<Token>);

/// Arms a slot in place by `rearm`, which only plain closures can; otherwise by assignment, as its documentation says.
pub(crate) struct Rearm<'a, const WORDS: usize>(pub(crate) &'a mut InPlaceSlot<Token, WORDS>);

impl<const WORDS: usize> Put for Rearm<'_, WORDS> {
    type Out = ();

    fn plain(self, closure: impl FnOnce(Token) + Send + 'static) {
        self.0.rearm(closure);
    }

    fn must(
        self,
        closure: impl FnOnce(Token) + Send + 'static,
        fallback: impl FnOnce() -> Token + Send + 'static,
    ) {
        *self.0 = InPlaceSlot::must_call(closure, fallback);
    }
}

/// Arms a slot in place by assignment.
pub(crate) struct Assign<'a, const WORDS: usize>(pub(crate) &'a mut InPlaceSlot<Token, WORDS>);

impl<const WORDS: usize> Put for Assign<'_, WORDS> {
    type Out = ();

    fn plain(self, closure: impl FnOnce(Token) + Send + 'static) {
        *self.0 = InPlaceSlot::new(closure);
    }

    fn must(
        self,
        closure: impl FnOnce(Token) + Send + 'static,
        fallback: impl FnOnce() -> Token + Send + 'static,
    ) {
        *self.0 = InPlaceSlot::must_call(closure, fallback);
    }
}

/// A captured value: memory of its own, and room that makes it as large as wanted. Counts its drop.
struct Capture<R> {
    id: Box<usize>,
    _room: R,
}

impl<R> Drop for Capture<R> {
    fn drop(&mut self) {
        ledger::note(*self.id, |record| record.drops += 1);
    }
}

/// The same without size.
struct Nothing;

impl Drop for Nothing {
    fn drop(&mut self) {
        ledger::note(0, |record| record.drops += 1);
    }
}

#[repr(align(64))]
struct Aligned;

/// Puts a callback of this kind into `put`; `id` is its record.
pub(crate) fn make<P: Put>(put: P, id: usize, kind: Kind) -> P::Out {
    match kind.size {
        Size::Zero => zero_sized(put, kind.must),
        Size::Small => sized(put, id, kind, || ()),
        Size::Large => sized(put, id, kind, || [0xAA_u8; 300]),
        Size::OverAligned => sized(put, id, kind, || Aligned),
    }
}

fn zero_sized<P: Put>(put: P, must: bool) -> P::Out {
    let (here, there) = (Nothing, Nothing);
    let closure = move |token: Token| {
        let _here = here;
        call(0, &token);
    };
    if must {
        put.must(closure, move || {
            let _there = there;
            fall_back(0)
        })
    } else {
        std::mem::forget(there);
        put.plain(closure)
    }
}

fn sized<P: Put, R: Send + 'static>(put: P, id: usize, kind: Kind, room: fn() -> R) -> P::Out {
    let capture = move || Capture { id: Box::new(id), _room: room() };
    let (panics, reenters, here) = (kind.panics, kind.reenters, capture());
    let closure = move |token: Token| {
        call(*here.id, &token);
        if let Some(slot) = reenters {
            slots::reenter(slot);
        }
        if panics {
            panic::panic_any(Planned);
        }
    };
    if kind.must {
        let (panics, there) = (kind.fallback_panics, capture());
        put.must(closure, move || {
            let token = fall_back(*there.id);
            if panics {
                panic::panic_any(Planned);
            }
            token
        })
    } else {
        put.plain(closure)
    }
}

fn call(id: usize, token: &Token) {
    ledger::note(id, |record| {
        record.calls += 1;
        record.numbers += token.number();
    });
}

fn fall_back(id: usize) -> Token {
    ledger::note(id, |record| record.fallbacks += 1);
    Token::new(FALLBACK)
}
