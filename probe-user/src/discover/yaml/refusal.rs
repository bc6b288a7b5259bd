//! Why a text is not YAML, without quoting it: a snippet of the wrong line could be the token.

use serde_saphyr::Error;

use crate::discover::error::DiscoverError;
use crate::discover::root::Text;

/// One sentence from the parser's error.
pub(super) fn explain(text: &Text, error: &Error) -> DiscoverError {
    let cause = innermost(error);
    let place = error
        .location()
        .or_else(|| cause.location())
        .filter(|location| location.line() > 0)
        .map_or_else(String::new, |location| {
            format!(" at line {}, column {}", location.line(), location.column())
        });
    let source = &text.source;
    DiscoverError::unusable(
        source.kind,
        &source.path,
        format!("{}{place}", reason(cause)),
    )
}

fn innermost(error: &Error) -> &Error {
    match error {
        Error::AliasError { error, .. } | Error::WithSnippet { error, .. } => innermost(error),
        other => other,
    }
}

fn reason(error: &Error) -> &'static str {
    match error {
        Error::DuplicateMappingKey { .. } => "the same key stands there twice",
        Error::UnknownAnchor { .. } => "an alias refers to an anchor that is not there",
        Error::RecursiveReferencesRequireWeakTypes { .. } => "an alias refers to itself",
        Error::Budget { .. }
        | Error::AliasReplayCounterOverflow { .. }
        | Error::AliasReplayLimitExceeded { .. }
        | Error::AliasExpansionLimitExceeded { .. }
        | Error::AliasReplayStackDepthExceeded { .. } => {
            "it is larger, deeper or more often aliased than any such file has to be"
        }
        Error::Eof { .. } => "it ends too early",
        Error::MergeValueNotMapOrSeqOfMaps { .. } => "a merge key (<<) has no mapping to merge",
        Error::UnsupportedTag { .. } | Error::TaggedScalarCannotDeserializeIntoString { .. } => {
            "a tag there is not supported"
        }
        Error::Message { .. } => "a key there is not text",
        _ => "it is not valid YAML",
    }
}
