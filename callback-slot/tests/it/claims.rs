//! What the documentation claims of the code as it is written: no operation can loop or panic, and each test that a claim
//! names is there.

use crate::api::{files_below, public_files};
use std::fs;
use std::path::Path;

/// Lines of code that hold one of `words`, with the file; without comments, attributes and unit tests.
fn lines_with(words: &[&str]) -> Vec<(String, String)> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    for file in files_below(&src) {
        let name = file.strip_prefix(&src).unwrap().display().to_string().replace('\\', "/");
        let text = fs::read_to_string(&file).unwrap();
        let code = text.lines().map(str::trim).take_while(|&line| line != "mod tests {");
        let code = code.filter(|line| !line.starts_with("//") && !line.starts_with("#["));
        found.extend(
            code.filter(|line| words.iter().any(|word| line.contains(word)))
                .map(|line| (name.clone(), line.to_owned())),
        );
    }
    found
}

fn assert_only(found: &[(String, String)], allowed: &[(&str, &str)]) {
    let found: Vec<_> = found.iter().map(|(file, line)| (file.as_str(), line.as_str())).collect();
    assert_eq!(found, allowed);
}

/// Wait-free: a row of steps, none of which is tried again. Only who asks to wait waits.
#[test]
fn nothing_loops_or_locks_but_a_wait() {
    let loops = ["loop {", "while ", " in ", "_weak(", "fetch_update(", "spin_loop", "yield_now", "park"];
    let locks = ["Mutex", "RwLock", "Condvar", "OnceLock", "LazyLock", ".lock()"];
    let steps: Vec<_> = lines_with(&loops).into_iter().chain(lines_with(&locks)).collect();
    assert_only(
        &steps,
        &[
            ("reply/wait.rs", "loop {"),
            ("reply/wait.rs", "thread::park();"),
            ("reply/wait.rs", "loop {"),
            ("reply/wait.rs", "None => thread::park(),"),
            ("reply/wait.rs", "Some(left) => thread::park_timeout(left),"),
            ("reply/waiter.rs", "Waiter::Thread(thread) => thread.unpark(),"),
        ],
    );
}

/// No panics of the crate's own, but the assertion that is one and the abort; one in builds for debugging, two under loom.
#[test]
fn nothing_panics_but_what_says_so() {
    let words =
        ["panic!", "assert!", "assert_eq!", "assert_ne!", "unreachable!", "unwrap()", "expect(", "todo!"];
    let panics: Vec<_> =
        lines_with(&words).into_iter().filter(|(_, line)| !line.contains("const_assert!")).collect();
    assert_only(
        &panics,
        &[
            ("in_place/place.rs", "debug_assert!(old.is_none(), \"only an empty slot is filled\");"),
            ("lock_free.rs", "assert!("),
            ("lock_free.rs", "$(const _: () = ::core::assert!("),
            ("primitive/heap.rs", "assert_ne!(layout.size(), 0, \"a node holds at least its header\");"),
            ("primitive/heap.rs", "let pointer = NonNull::new(pointer).expect(\"no memory for a node\");"),
            ("shared/node.rs", "panic!(\"a shared slot has more handles than fit into memory\")"),
        ],
    );
}

/// Whether these lines of documentation have a block of code that `cargo test --doc` compiles and runs.
fn has_example(documentation: &[&str]) -> bool {
    let fences = documentation.iter().filter(|line| line.starts_with("/// ```"));
    fences.step_by(2).any(|opening| *opening == "/// ```")
}

/// Every public item shows how it is used.
#[test]
fn every_public_item_has_an_example() {
    let declares =
        ["pub fn ", "pub const fn ", "pub struct ", "pub enum ", "pub trait ", "macro_rules! assert_"];
    // Is in a private module: it seals a trait.
    let unreachable = "pub trait IntoPointer";
    let mut items = 0;
    for file in public_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        let text = fs::read_to_string(&file).unwrap();
        let mut documentation = Vec::new();
        for line in text.lines().map(str::trim).take_while(|&line| line != "mod tests {") {
            if line.starts_with("///") {
                documentation.push(line);
            } else if !line.starts_with("#[") {
                if declares.iter().any(|start| line.starts_with(start)) && !line.starts_with(unreachable) {
                    items += 1;
                    assert!(has_example(&documentation), "no example: {line} in {}", file.display());
                }
                documentation.clear();
            }
        }
    }
    assert!(items > 40, "{items} items were found");
}

/// Each claim of `docs/soundness.md` names its tests. The models are not part of the package, so there only the tests are
/// looked up.
#[test]
fn each_test_that_a_claim_names_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let models = root.join("../loom-tests/tests");
    let folders = [root.join("src"), root.join("tests/it"), models.clone()];
    let files: Vec<_> =
        folders.iter().filter(|folder| folder.is_dir()).flat_map(|folder| files_below(folder)).collect();
    let modules: Vec<_> = files.iter().filter_map(|file| file.file_stem()?.to_str()).collect();
    let code: String = files.iter().map(|file| fs::read_to_string(file).unwrap()).collect();
    // A test is a function, or a name that a macro makes one of; a module is a file, or lies in one.
    let exists = |name: &str| match name.strip_suffix('*') {
        Some(start) => ["fn ", "    "].iter().any(|before| code.contains(&format!("{before}{start}"))),
        None => {
            modules.contains(&name)
                || [format!("fn {name}("), format!("    {name}: "), format!("mod {name} {{")]
                    .iter()
                    .any(|text| code.contains(text))
        }
    };

    let page = fs::read_to_string(root.join("docs/soundness.md")).unwrap();
    let (_, claims) = page.split_once("# Each claim and its test\n").unwrap();
    let (claims, _) = claims.split_once("\n# ").unwrap();
    let mut named = 0;
    for tests in claims.lines().filter_map(|row| row.split('|').nth(2)) {
        let tests = if models.is_dir() { tests } else { tests.split("loom ").next().unwrap() };
        let words = tests.split('`').skip(1).step_by(2).filter(|word| *word != "it");
        for word in words.filter(|word| word.chars().all(|c| c.is_ascii_lowercase() || "_:*".contains(c))) {
            named += 1;
            for part in word.split("::").filter(|part| *part != "*") {
                assert!(exists(part), "{part} of {word}, which a claim names");
            }
        }
    }
    assert!(named > 20, "the table names its tests");
}
