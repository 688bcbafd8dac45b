//! What a caller can ask for. A command is checked, names the keys it latches, and is then a pure function from a
//! snapshot to changes and a response.

use crate::engine::Modify;

/// What a command's check came to: the changes to propose (none for a read, or where nothing needs to change), and
/// the response that the caller gets once they are applied.
#[derive(Debug)]
pub struct Processed {
    /// The changes, in the order in which they take effect.
    pub modifies: Vec<Modify>,
    /// What the caller gets.
    pub response: Response,
}
