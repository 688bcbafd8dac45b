//! The range of the keys at which a store is split.

use super::{Config, ConfigError};

/// Each region costs some work at every tick, in one thread for all of them.
const MOST_REGIONS: usize = 1024;

impl Config {
    pub(super) fn validate_split_keys(&self) -> Result<(), ConfigError> {
        let refuse = |value: String, range: String| Err(ConfigError { field: "split_keys", value, range });
        let mut before: &[u8] = b"";
        for key in &self.split_keys {
            if key.as_slice() <= before || key.len() > self.max_key_bytes {
                let range = format!("a list of ascending keys of 1 to {} bytes", self.max_key_bytes);
                return refuse(
                    format!("\"{}\" after \"{}\"", key.escape_ascii(), before.escape_ascii()),
                    range,
                );
            }
            before = key;
        }
        if self.split_keys.len() >= MOST_REGIONS {
            return refuse(
                format!("{} keys", self.split_keys.len()),
                format!("fewer than {MOST_REGIONS} keys"),
            );
        }
        Ok(())
    }
}
