//! In the end, when all have applied the same entries, the data of all replicas is the same.

use crate::engine::{Cf, Snapshot};

/// Compares the data of two replicas, but for what each knows of itself.
///
/// # Errors
/// The first key that differs.
pub(in crate::simulator) fn check(one: &dyn Snapshot, other: &dyn Snapshot) -> Result<(), String> {
    for cf in Cf::ALL.into_iter().filter(|cf| *cf != Cf::Meta) {
        let (one, other) = (pairs(one, cf)?, pairs(other, cf)?);
        if let Some((one, other)) = one.iter().zip(&other).find(|(one, other)| one != other) {
            return Err(format!("in {} one replica has {one:?} and another {other:?}", cf.name()));
        }
        if one.len() != other.len() {
            return Err(format!(
                "in {} one replica has {} keys and another {}",
                cf.name(),
                one.len(),
                other.len()
            ));
        }
    }
    Ok(())
}

fn pairs(data: &dyn Snapshot, cf: Cf) -> Result<Vec<(String, String)>, String> {
    let mut cursor = data.cursor(cf, b"", b"");
    let mut pairs = Vec::new();
    cursor.seek_to_first().map_err(|error| error.to_string())?;
    while let Some((key, value)) = cursor.entry() {
        pairs.push((key.escape_ascii().to_string(), value.escape_ascii().to_string()));
        cursor.next().map_err(|error| error.to_string())?;
    }
    Ok(pairs)
}
