//! Makes the report of a run of the matrix: a page that stands by itself, and Markdown for the documents.

use std::{fs, path::PathBuf, process::ExitCode};

use benches::{
    program,
    record::Results,
    report::{contents, html, markdown},
    round::Failure,
};
use clap::Parser;

/// Turn what the matrix measured into a page and a document.
#[derive(Parser)]
#[command(name = "report")]
struct Args {
    /// The file that the matrix filled.
    #[arg(long)]
    results: PathBuf,
    /// The page to write.
    #[arg(long)]
    html: PathBuf,
    /// The document to write.
    #[arg(long)]
    markdown: PathBuf,
}

fn main() -> ExitCode {
    program::end("report", run(&Args::parse()))
}

fn run(args: &Args) -> Result<(), Failure> {
    let results = Results::read(&args.results)?;
    if results.records.is_empty() {
        return Err(format!("{}: no round was measured", args.results.display()).into());
    }
    let contents = contents(&results);
    for (path, text) in [(&args.html, html(&contents)), (&args.markdown, markdown(&contents))] {
        fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        println!("{}", path.display());
    }
    Ok(())
}
