//! What joinprobe exports, read by the programs that read it on a real cluster.

mod hlog;
mod prometheus;
mod published;
mod samples;
mod textfile;
