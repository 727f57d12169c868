//! What each data mover operation does to bytes.
