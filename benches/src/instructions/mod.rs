//! What is counted in instructions, how it is counted, and the comparison with what was counted before: a guard against
//! slower code that does not depend on how busy the machine is.

pub mod baseline;
pub mod cases;
pub mod count;
