//! The sizes that are measured: one thing grows at a time, everything else stays at the usual size.

use std::fmt;

use super::contender::Operation;

/// How large a store is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Keys that are there, all of which may be read and written.
    pub keys: u64,
    /// Bytes of a value.
    pub value: usize,
    /// Regions, each with as many of the keys.
    pub regions: u64,
}

const USUAL: Size = Size { keys: 100_000, value: 150, regions: 1 };

/// So that the largest values need no more room than the disk has.
const FEW_KEYS: Size = Size { keys: 10_000, ..USUAL };

/// What grows.
pub struct Axis {
    /// Its name.
    pub name: &'static str,
    /// What is done at each size.
    pub operations: &'static [Operation],
    /// From the smallest, which the others are compared with.
    pub sizes: [Size; 4],
}

/// Everything that is measured.
pub const AXES: [Axis; 3] = [
    Axis {
        name: "keys",
        operations: &[Operation::Put, Operation::Get],
        sizes: [
            Size { keys: 10_000, ..USUAL },
            Size { keys: 100_000, ..USUAL },
            Size { keys: 1_000_000, ..USUAL },
            Size { keys: 10_000_000, ..USUAL },
        ],
    },
    Axis {
        name: "bytes of a value",
        operations: &[Operation::Put],
        sizes: [
            Size { value: 64, ..FEW_KEYS },
            Size { value: 512, ..FEW_KEYS },
            Size { value: 4 << 10, ..FEW_KEYS },
            Size { value: 64 << 10, ..FEW_KEYS },
        ],
    },
    Axis {
        name: "regions",
        operations: &[Operation::Put],
        sizes: [
            USUAL,
            Size { regions: 4, ..USUAL },
            Size { regions: 16, ..USUAL },
            Size { regions: 64, ..USUAL },
        ],
    },
];

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { keys, value, regions } = self;
        let plural = if *regions == 1 { "" } else { "s" };
        write!(f, "{keys} keys of {value} B, {regions} region{plural}")
    }
}
