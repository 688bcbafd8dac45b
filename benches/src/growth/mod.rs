//! What a put and a read cost as a store grows: more keys, larger values, more regions. Each size is compared with the
//! smallest of its kind and with a bare RocksDB that holds the same.

mod axis;
mod contender;
mod load;

pub use axis::{AXES, Axis, Size};
pub use contender::{Contender, Operation, Round};
