//! The contenders, by kind: this project's slots, cells that hold a boxed closure, locks, and channels used in two ways.

mod cells;
mod locks;
mod ours;
mod carry;
mod travel;

pub use self::{
    carry::{
        AsyncOneshotCarry, CattyCarry, CrossbeamCarry, FuturesCarry, MpscCarry, OneshotCarry, TokioCarry,
    },
    cells::{ArcSwapCell, AtomicBoxCell, AtomicTakeCell, CallbackCell, DoubleBoxCell, TwoWordCell},
    locks::{ParkingLot, StdMutex},
    ours::InPlace,
    travel::{
        AsyncOneshotTravel, CattyTravel, CrossbeamTravel, FuturesTravel, MpscTravel, OneshotTravel,
        TokioTravel,
    },
};

/// What contenders without a callback type of their own hold.
type BoxedCallback = Box<dyn FnOnce(u64) + Send>;

/// A callback in a container that asks for `Sync`, though only its last owner touches it.
pub struct Sealed(BoxedCallback);

// SAFETY: nothing is reachable through `&Sealed`; the box is taken out by value only, which `Send` covers.
unsafe impl Sync for Sealed {}
