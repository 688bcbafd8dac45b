//! The report of a run of the matrix: the same contents as a page that stands by itself and as Markdown for the
//! documents.

mod contents;
mod hypotheses;
mod html;
mod markdown;
mod plots;
mod tables;

pub use contents::{Contents, Part, contents};
pub use html::html;
pub use markdown::markdown;
