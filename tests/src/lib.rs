//! The lab joinprobe is tested in.
