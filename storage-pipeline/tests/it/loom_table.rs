//! The table of `loom-tests/README.md` says what each model guards: every model is in it, and whatever it names exists.

use std::{collections::BTreeSet, fs, path::PathBuf};

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// Names of the files in a folder that end like this, without that end.
fn names(folder: &str, end: &str) -> BTreeSet<String> {
    let files = fs::read_dir(root().join(folder)).unwrap().map(|file| file.unwrap().file_name());
    let names = files.filter_map(|name| Some(name.to_str()?.strip_suffix(end)?.to_owned()));
    names.collect()
}

/// The models of a file: its tests, and what its `races!` makes of a list.
fn models(file: &str) -> BTreeSet<String> {
    let text = read(&format!("loom-tests/tests/{file}.rs"));
    let tests = text.split("#[test]").skip(1).filter_map(|rest| {
        let name = rest.trim_start().strip_prefix("fn ")?;
        name.split_once('(').map(|(name, _)| name.to_owned())
    });
    let raced = text.split_once("\nraces! {").map_or("", |(_, rest)| rest.split_once("\n}").unwrap().0);
    let raced = raced.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim().to_owned());
    tests.chain(raced).filter(|name| !name.starts_with('$')).collect()
}

/// What a text has between backticks.
fn quoted(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

fn matches(pattern: &str, name: &str) -> bool {
    let Some((begin, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(behind) = name.strip_prefix(begin) else { return false };
    (0..=behind.len()).any(|at| matches(rest, &behind[at..]))
}

/// Models of one file, by patterns.
type Guards = Vec<(String, Vec<String>)>;

/// The models of each row, and the mutations that it names.
fn rows() -> Vec<(Guards, Vec<String>)> {
    let text = read("loom-tests/README.md");
    let files = names("loom-tests/tests", ".rs");
    let rows = text.lines().filter(|line| line.starts_with("| ") && line.contains('`'));
    let row = |line: &str| {
        let cells: Vec<_> = line.split('|').collect();
        let mut guards = Guards::new();
        for word in quoted(cells[2]) {
            match guards.last_mut() {
                _ if files.contains(word) => guards.push((word.to_owned(), Vec::new())),
                // The module of a model, where it has one, says in which form it runs.
                Some((_, patterns)) => patterns.push(word.rsplit("::").next().unwrap().to_owned()),
                None => {}
            }
        }
        (guards, quoted(cells[4]).into_iter().map(str::to_owned).collect())
    };
    rows.map(row).filter(|(guards, _)| !guards.is_empty()).collect()
}

#[test]
fn every_loom_model_stands_in_the_table_and_the_table_names_no_other() {
    let rows = rows();
    let guards: Vec<_> = rows.iter().flat_map(|(guards, _)| guards).collect();
    let mut bad = Vec::new();
    for file in names("loom-tests/tests", ".rs") {
        let models = models(&file);
        assert!(models.len() > 2, "{file} has models: {models:?}");
        let own: Vec<_> = guards.iter().filter(|(of, _)| *of == file).map(|(_, patterns)| patterns).collect();
        for model in &models {
            let is_in = |patterns: &&Vec<String>| {
                patterns.is_empty() || patterns.iter().any(|pattern| matches(pattern, model))
            };
            if !own.iter().copied().any(|patterns| is_in(&patterns)) {
                bad.push(format!("{file} {model} stands in no row"));
            }
        }
        let stale = own
            .iter()
            .copied()
            .flatten()
            .filter(|pattern| !models.iter().any(|model| matches(pattern, model)));
        bad.extend(stale.map(|pattern| format!("{file} has no model {pattern}")));
    }
    assert!(bad.is_empty(), "{bad:#?}");
}

#[test]
fn every_mutation_of_the_pipeline_stands_in_the_table_and_every_named_one_exists() {
    let named: BTreeSet<_> = rows().into_iter().flat_map(|(_, mutations)| mutations).collect();
    let patches = names("loom-tests/pipeline-mutations", ".patch");
    let missing: Vec<_> = patches.difference(&named).collect();
    assert!(missing.is_empty(), "patches that stand in no row: {missing:?}");
    let of_the_slot = read("callback-slot/mutations.sh");
    let unknown: Vec<_> =
        named.difference(&patches).filter(|name| !of_the_slot.contains(&format!("\"{name} "))).collect();
    assert!(unknown.is_empty(), "no such mutations: {unknown:?}");
}
