//! The report as Markdown, for the documents. Plots are on the page only.

use std::fmt::Write;

use super::contents::{Contents, Part};

/// The document.
#[must_use]
pub fn markdown(contents: &Contents) -> String {
    let mut out = format!("# {}\n", contents.title);
    for part in &contents.parts {
        // Writing to a string does not fail.
        let _ = match part {
            Part::Heading(text) => writeln!(out, "\n## {text}"),
            Part::Text(text) => writeln!(out, "\n{text}"),
            Part::Command(text) => writeln!(out, "\n```sh\n{text}\n```"),
            Part::List(items) => {
                let items: String = items.iter().map(|item| format!("- {item}\n")).collect();
                write!(out, "\n{items}")
            }
            Part::Table(head, rows) => {
                let row = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
                let rule = row(&vec!["---".to_owned(); head.len()]);
                let rows: String = rows.iter().map(|cells| row(cells)).collect();
                write!(out, "\n{}{rule}{rows}", row(head))
            }
            Part::Plot(_, caption) => {
                writeln!(out, "\n*On the page that `make bench-report` writes: {caption}.*")
            }
        };
    }
    out
}
