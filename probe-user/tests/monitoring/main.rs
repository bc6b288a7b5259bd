//! What joinprobe exports, read by the programs that read it on a real cluster.

mod hlog;
mod prometheus;
mod samples;
mod textfile;
