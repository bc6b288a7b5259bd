//! What joinprobe exports, read by the programs that read it on a real cluster.

mod prometheus;
mod samples;
mod textfile;
