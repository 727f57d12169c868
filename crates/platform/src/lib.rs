//! Cores, memory and links in modelled time.
