//! What one expects of `OptionCell` besides its own operations: a default, conversions, a debug form.

use core::fmt;

use super::{OneWord, OptionCell};

/// An empty cell.
impl<P: OneWord> Default for OptionCell<P> {
    fn default() -> Self {
        Self::empty()
    }
}

/// A cell that holds the value.
impl<P: OneWord> From<P> for OptionCell<P> {
    fn from(value: P) -> Self {
        Self::new(value)
    }
}

/// Shows whether there is a value, which others may take out at any time.
impl<P: OneWord> fmt::Debug for OptionCell<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_some() { "OptionCell(Some(..))" } else { "OptionCell(None)" })
    }
}
