//! Intel DSA formats: descriptors, completion records, capabilities. Bytes and names only.
