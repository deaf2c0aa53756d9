//! Opens every tensor file.
