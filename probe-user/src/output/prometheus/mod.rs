//! Prometheus: a scrape endpoint and node_exporter's textfile, from one set of values.

mod buckets;
mod earlier;
mod families;
mod format;
mod listen;
mod serve;
mod snapshot;
#[cfg(test)]
mod tests;
mod textfile;

pub use listen::Listen;
pub use textfile::Textfile;
