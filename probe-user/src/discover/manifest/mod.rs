//! The static pod manifests of etcd and of the API server.

mod apiserver;
mod etcd;
mod flags;

use std::time::Duration;

pub(super) use apiserver::{ApiServerManifest, apiserver};
pub(super) use etcd::{EtcdManifest, etcd};

use super::endpoint::{Endpoint, Scheme, endpoint};
use super::error::DiscoverError;
use super::origin::Found;
use super::yaml::Field;
use crate::target::Role;
use flags::Value;

/// Longest interval believed. etcd itself refuses an election timeout above 50 s.
const MAX_MILLISECONDS: u64 = 50_000;

/// etcd's intervals: a bare number of milliseconds.
pub(super) fn milliseconds(field: &Field<'_>) -> Result<Option<Found<Duration>>, DiscoverError> {
    let Some(found) = field.found()? else {
        return Ok(None);
    };
    match parse_milliseconds(found.value) {
        Some(duration) => Ok(Some(Found::new(duration, found.origin))),
        None => Err(field.refuse(NOT_MILLISECONDS)),
    }
}

const NOT_MILLISECONDS: &str = "it is not a number of milliseconds from 1 to 50000";

fn parse_milliseconds(text: &str) -> Option<Duration> {
    text.parse()
        .ok()
        .filter(|number| (1..=MAX_MILLISECONDS).contains(number))
        .map(Duration::from_millis)
}

/// A flag's comma-separated URLs. Unix sockets are left out: there is no network in them.
fn endpoints(role: Role, value: Option<Value<'_>>) -> Result<Vec<Found<Endpoint>>, DiscoverError> {
    let Some(value) = value else {
        return Ok(Vec::new());
    };
    let mut endpoints = Vec::new();
    for url in value.text()?.split(',').map(str::trim) {
        let endpoint = endpoint(role, url, None).map_err(|reason| value.refuse(reason))?;
        if endpoint.scheme != Scheme::Unix {
            endpoints.push(Found::new(endpoint, value.origin()));
        }
    }
    Ok(endpoints)
}
