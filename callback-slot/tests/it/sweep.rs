//! Captures of every size and alignment, zero-sized ones too: each is found where it was put, and dropped once.

use callback_slot::{Callback, CallbackSlot, InPlaceSlot, SharedSlot};
use std::cell::Cell;

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
    static DROPS: Cell<usize> = const { Cell::new(0) };
}

fn bump(count: &'static std::thread::LocalKey<Cell<usize>>) {
    count.with(|count| count.set(count.get() + 1));
}

/// Something to capture: aligned as `A`, with `SIZE` bytes to recognize, and counting its drop without a field.
struct Captured<A, const SIZE: usize> {
    align: [A; 0],
    bytes: [u8; SIZE],
}

impl<A, const SIZE: usize> Captured<A, SIZE> {
    fn new() -> Self {
        Captured { align: [], bytes: std::array::from_fn(|i| i as u8 ^ 0x5a) }
    }

    fn check(&self) {
        let address = std::ptr::from_ref(&self.align).addr();
        assert_eq!(address % align_of::<A>(), 0, "misaligned");
        // Miri sees each byte that was not copied; looking at every byte would take it minutes.
        let step = if cfg!(miri) { SIZE.div_ceil(3).max(1) } else { 1 };
        assert!(self.bytes.iter().enumerate().step_by(step).all(|(i, &byte)| byte == i as u8 ^ 0x5a));
    }
}

impl<A, const SIZE: usize> Drop for Captured<A, SIZE> {
    fn drop(&mut self) {
        self.check();
        bump(&DROPS);
    }
}

#[cfg(not(miri))]
#[derive(Clone, Copy)]
#[repr(align(16))]
struct Align16;
#[derive(Clone, Copy)]
#[repr(align(64))]
struct Align64;
#[derive(Clone, Copy)]
#[repr(align(4096))]
struct Align4096;

fn closure<A: Send + 'static, const SIZE: usize>() -> impl FnOnce(usize) + Send + 'static {
    let captured = Captured::<A, SIZE>::new();
    move |value| {
        captured.check();
        assert_eq!(value, 7);
        bump(&CALLS);
    }
}

fn fallback<A: Send + 'static, const SIZE: usize>() -> impl FnOnce() -> usize + Send + 'static {
    let captured = Captured::<A, SIZE>::new();
    move || {
        captured.check();
        7
    }
}

/// Runs `scene`, which makes one must-call with this capture twice, and checks what it came to.
fn once(scene: impl FnOnce()) {
    let before = (CALLS.get(), DROPS.get());
    scene();
    assert_eq!((CALLS.get() - before.0, DROPS.get() - before.1), (1, 2));
}

fn each_form<A: Send + 'static, const SIZE: usize>() {
    let (f, g) = (closure::<A, SIZE>, fallback::<A, SIZE>);
    once(|| Callback::must_call(f(), g()).call(7));
    once(|| drop(Callback::must_call(f(), g())));
    once(|| CallbackSlot::must_call(f(), g()).complete(7).unwrap());
    once(|| drop(CallbackSlot::must_call(f(), g())));
    once(|| SharedSlot::must_call(f(), g()).complete(7).unwrap());
    once(|| drop(SharedSlot::must_call(f(), g())));
    once(|| InPlaceSlot::<usize>::must_call(f(), g()).complete(7).unwrap());
    once(|| drop(InPlaceSlot::<usize>::must_call(f(), g())));
    once(|| InPlaceSlot::<usize, 0>::must_call(f(), g()).complete(7).unwrap());
    once(|| drop(InPlaceSlot::<usize, 0>::must_call(f(), g())));
}

#[test]
fn captures_of_every_size_and_alignment() {
    macro_rules! sweep {
        ($($align:ty),+) => {
            $(each_form::<$align, 0>();
            each_form::<$align, 1>();
            each_form::<$align, 65>();
            #[cfg(not(miri))]
            {
                each_form::<$align, 7>();
                each_form::<$align, 8>();
                each_form::<$align, 64>();
                each_form::<$align, 1000>();
            })+
        };
    }
    sweep!(u8, u64, Align64);
    #[cfg(not(miri))]
    sweep!(u16, u32, u128, Align16, Align4096);
}

#[test]
fn values_of_every_size_and_alignment() {
    fn value<V: Copy + Send + 'static, const SIZE: usize>(value: V) {
        let bytes: [u8; SIZE] = std::array::from_fn(|i| i as u8);
        let check = move |(got, other): (V, [u8; SIZE])| {
            assert_eq!(std::ptr::from_ref(&got).addr() % align_of::<V>(), 0);
            assert_eq!(other, bytes);
        };
        Callback::new(check).call((value, bytes));
        drop(Callback::must_call(check, move || (value, bytes)));
        SharedSlot::new(check).complete((value, bytes)).unwrap();
        InPlaceSlot::<_>::new(check).complete((value, bytes)).unwrap();
    }
    macro_rules! sweep {
        ($($value:expr),+) => {
            $(value::<_, 0>($value);
            value::<_, 3>($value);
            value::<_, 30>($value);)+
        };
    }
    sweep!((), 1_u8, 1_u32, 1_u64, 1_u128, Align64, Align4096);
}

/// Function items and closures without captures are calls without memory.
#[test]
fn zero_sized_callbacks() {
    fn item(value: usize) {
        assert_eq!(value, 7);
        bump(&CALLS);
    }
    let before = CALLS.get();
    Callback::new(item).call(7);
    Callback::new(|value: usize| item(value + 1)).call(6);
    drop(Callback::must_call(item, || 7));
    drop(Callback::new(item));
    CallbackSlot::new(item).complete(7).unwrap();
    SharedSlot::new(item).complete(7).unwrap();
    assert_eq!(CALLS.get() - before, 5);
}
