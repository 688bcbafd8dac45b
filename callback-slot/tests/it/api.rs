//! The public surface is in a file, so that a change of it is seen in review.
//!
//! The listing is taken from the sources: every `pub` item of the modules that `lib.rs` exports, with its signature, what it
//! derives and the feature that it needs. `api.sh` writes it anew.

use std::fs;
use std::path::{Path, PathBuf};

/// The signatures in a file: lines that begin with `pub` or with `impl`, up to the body, and modules that need a feature.
fn signatures(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut attributes = Vec::new();
    let mut lines = source.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if line == "mod tests {" {
            break;
        }
        if line.starts_with("#[") || line.starts_with("//") {
            let listed =
                line.starts_with("#[derive") || line.starts_with("#[cfg(") && line.contains("feature");
            attributes.extend(listed.then_some(line));
            continue;
        }
        let attributes = std::mem::take(&mut attributes);
        let exported = ["pub ", "impl<", "impl ", "unsafe impl", "macro_rules! assert_lock_free"];
        let gated = line.starts_with("mod ") && !attributes.is_empty();
        if !gated && !exported.iter().any(|start| line.starts_with(start)) {
            continue;
        }
        found.extend(attributes.into_iter().map(str::to_owned));
        let mut signature = line.to_owned();
        while !signature.contains(['{', ';']) {
            let Some(next) = lines.next() else { break };
            signature.push(' ');
            signature.push_str(next);
        }
        let end = signature.find([';', '{']).unwrap_or(signature.len());
        // A `use` names its items in braces; a type's fields are private, an enum's variants are listed below.
        let signature =
            if signature.starts_with("pub use") { &signature[..] } else { signature[..end].trim() };
        found.push(signature.to_owned());
        if line.starts_with("pub enum") {
            found.extend(variants(&mut lines));
        }
    }
    found
}

/// The variants of an enum whose head was just read.
fn variants<'a>(lines: &mut impl Iterator<Item = &'a str>) -> Vec<String> {
    let body = lines.take_while(|&line| line != "}");
    body.filter(|line| !line.starts_with(['/', '#'])).map(|line| format!("    {line}")).collect()
}

/// The files below a folder, in order.
pub(crate) fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// The files that declare something public.
pub(crate) fn public_files(src: &Path) -> Vec<PathBuf> {
    let mut files = files_below(src);
    // These are private throughout: what they declare `pub` no other crate can name.
    let private = ["primitive", "raw.rs", "task.rs", "state.rs", "node.rs", "handoff.rs", "waiter.rs"];
    files.retain(|file| !private.iter().any(|name| file.iter().any(|part| part == *name)));
    files
}

/// The listing, file by file.
fn listing(src: &Path) -> String {
    let mut listing = String::new();
    for file in public_files(src) {
        let found = signatures(&fs::read_to_string(&file).unwrap());
        if !found.is_empty() {
            let name = file.strip_prefix(src).unwrap().display().to_string().replace('\\', "/");
            listing.push_str(&format!("{name}\n"));
            found.iter().for_each(|signature| listing.push_str(&format!("    {signature}\n")));
        }
    }
    listing
}

#[test]
fn public_api_is_as_listed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (listed, file) = (listing(&root.join("src")), root.join("api.txt"));
    if std::env::var_os("UPDATE_API").is_some() {
        fs::write(&file, &listed).unwrap();
    }
    let expected = fs::read_to_string(&file).unwrap();
    let changed = listed.lines().zip(expected.lines()).find(|(now, before)| now != before);
    assert!(
        listed == expected,
        "the public surface has changed, first at {changed:?}; run api.sh if that is meant"
    );
}
