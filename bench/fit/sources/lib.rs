//! Nothing: this package only pins the crates whose files the corpus reads.
