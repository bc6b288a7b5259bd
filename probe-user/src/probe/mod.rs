//! Our own connection: one per target, paced, measured by the kernel like any other.

mod report;

pub use report::{
    ClientCertificate, EtcdAnswer, ProbeFailure, ProbeReport, Stage, Stages, TlsState,
};
