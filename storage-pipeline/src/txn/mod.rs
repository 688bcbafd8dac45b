//! Percolator on four column families.
