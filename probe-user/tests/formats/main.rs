//! What other programs read: exit codes, messages, the schema and the configuration that is shipped.

mod errors;
mod npd;
mod schema;
mod verdicts;
