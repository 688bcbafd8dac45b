//! The configuration of a node: a text, and in front of it flags, a line each. All of it is taken or refused with a reason;
//! what is taken is taken the same way again, and stands for a store that can be set up.

use storage_pipeline::server::{NodeConfig, NodeConfigError};

/// What begins the line of a flag.
pub const FLAG: &str = "--set ";

/// Takes flags and file as the server's own program does. `None` where the bytes are no text.
///
/// # Panics
/// If something is refused without a reason, or not taken the same way twice.
pub fn run(input: &[u8]) -> Option<Result<(), String>> {
    let text = std::str::from_utf8(input).ok()?;
    let (flags, file) = split(text);
    Some(match taken(&flags, file) {
        Ok(config) => {
            let again = taken(&flags, file).expect("what was taken once is taken again");
            assert_eq!(format!("{again:?}"), format!("{config:?}"));
            let mut validated = config.clone();
            validated.validate().expect("what is valid stays so");
            assert_eq!(format!("{validated:?}"), format!("{config:?}"), "nothing more follows from it");
            config.store.validate().expect("its store can be set up");
            Ok(())
        }
        Err(error) => {
            let why = error.to_string();
            assert!(!why.trim().is_empty(), "{error:?}");
            Err(why)
        }
    })
}

/// The flags of the first lines, and what is behind them.
fn split(text: &str) -> (Vec<(&str, &str)>, &str) {
    let (mut flags, mut file) = (Vec::new(), text);
    while let Some((line, rest)) = file.split_once('\n')
        && let Some((name, value)) = line.strip_prefix(FLAG).and_then(|flag| flag.split_once('='))
    {
        flags.push((name, value));
        file = rest;
    }
    (flags, file)
}

fn taken(flags: &[(&str, &str)], file: &str) -> Result<NodeConfig, NodeConfigError> {
    let mut config = NodeConfig::default();
    config.read(file)?;
    for (name, value) in flags {
        config.set(name, value)?;
    }
    config.validate()?;
    Ok(config)
}
