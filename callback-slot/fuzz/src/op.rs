//! The operations, and how a program spells them.

/// Who shall complete, and how: the low bits of an argument.
#[derive(Clone, Copy, Debug)]
pub(crate) enum How {
    Complete,
    With,
    Catching,
    /// The builder panics.
    BadBuilder,
}

impl How {
    fn new(argument: usize) -> Self {
        match argument % 4 {
            0 => How::Complete,
            1 => How::With,
            2 => How::Catching,
            _ => How::BadBuilder,
        }
    }
}

/// What a callback is like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) must: bool,
    pub(crate) panics: bool,
    pub(crate) fallback_panics: bool,
    /// Completes this slot when it is called.
    pub(crate) reenters: Option<usize>,
    pub(crate) size: Size,
}

/// How large its captures are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Size {
    Zero,
    Small,
    Large,
    OverAligned,
}

impl Kind {
    fn new(flags: usize, size: usize) -> Self {
        let size_of = match size % 4 {
            0 => Size::Small,
            1 => Size::Zero,
            2 => Size::Large,
            _ => Size::OverAligned,
        };
        // A closure without captures knows nothing that could make it special.
        let special = size_of != Size::Zero;
        Kind {
            must: flags & 1 != 0,
            panics: special && flags & 2 != 0,
            fallback_panics: special && flags & 4 != 0,
            reenters: (special && flags & 8 != 0).then_some(size / 4 % 2),
            size: size_of,
        }
    }

    /// How many captured values there are to drop.
    pub(crate) fn captures(self) -> u32 {
        1 + u32::from(self.must)
    }
}

/// An operation. Callbacks in nobody's slot lie in a hand, and are named by their place in it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Make(Kind),
    Call(usize, How),
    Drop(usize),
    SlotArm(usize, usize),
    SlotTake(usize),
    SlotComplete(usize, How),
    SlotRearm(usize, usize),
    SlotReset(usize),
    SlotReplace(usize),
    SharedNew(Kind),
    SharedFrom(usize),
    SharedClone(usize),
    SharedComplete(usize, How),
    SharedDrop(usize),
    InPlaceNew(usize, Kind),
    InPlaceFrom(usize, usize),
    InPlaceRearm(usize, Kind),
    InPlaceReset(usize),
    InPlaceComplete(usize, How),
    InPlaceMove(usize),
    BoxCell(usize),
    CallbackCell(usize, usize),
    ReplyNew,
    Reply(usize, usize),
}

impl Op {
    /// The operations of a program. What is no operation ends it.
    pub(crate) fn parse(program: &[u8]) -> impl Iterator<Item = Op> + '_ {
        let mut bytes = program.iter().copied().filter(|byte| !byte.is_ascii_whitespace());
        std::iter::from_fn(move || {
            let name = bytes.next()?;
            let (a, b) = (usize::from(bytes.next()? & 15), usize::from(bytes.next()? & 15));
            Op::named(name, a, b)
        })
    }

    fn named(name: u8, a: usize, b: usize) -> Option<Op> {
        Some(match name {
            b'm' => Op::Make(Kind::new(a, b)),
            b'c' => Op::Call(a, How::new(b)),
            b'd' => Op::Drop(a),
            b'a' => Op::SlotArm(a, b),
            b't' => Op::SlotTake(a),
            b'e' => Op::SlotComplete(a, How::new(b)),
            b'r' => Op::SlotRearm(a, b),
            b'z' => Op::SlotReset(a),
            b'x' => Op::SlotReplace(a),
            b's' => Op::SharedNew(Kind::new(a, b)),
            b'u' => Op::SharedFrom(a),
            b'k' => Op::SharedClone(a),
            b'f' => Op::SharedComplete(a, How::new(b)),
            b'g' => Op::SharedDrop(a),
            b'i' => Op::InPlaceNew(b / 8, Kind::new(a, b)),
            b'v' => Op::InPlaceFrom(a, b),
            b'w' => Op::InPlaceRearm(b / 8, Kind::new(a, b)),
            b'y' => Op::InPlaceReset(a),
            b'p' => Op::InPlaceComplete(a, How::new(b)),
            b'q' => Op::InPlaceMove(a),
            b'b' => Op::BoxCell(a),
            b'o' => Op::CallbackCell(a, b),
            b'l' => Op::ReplyNew,
            b'n' => Op::Reply(a, b),
            _ => return None,
        })
    }
}
