//! Every figure of the published DSA characterisation.
