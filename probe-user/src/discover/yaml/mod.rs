//! YAML as far as kubeadm's files use it, read leniently: what is not asked for is not looked at, so that newer
//! versions and unknown fields do no harm.

mod field;
mod node;
mod refusal;

use super::error::DiscoverError;
use super::root::{Source, Text};
pub(super) use field::Field;
use node::Node;

/// The documents of one file.
pub(super) struct Documents {
    source: Source,
    documents: Vec<Node>,
}

impl Documents {
    /// Parses a file. The limits are far above what any of these files needs, and a file that exceeds them is refused
    /// within milliseconds.
    ///
    /// # Errors
    /// It is not YAML, holds a key twice, or expands beyond the limits.
    pub(super) fn parse(text: &Text) -> Result<Self, DiscoverError> {
        let options = serde_saphyr::options! {
            budget: serde_saphyr::budget! {
                max_events: 50_000,
                max_nodes: 20_000,
                // The deepest pod manifest is half as deep, and every level takes stack.
                max_depth: 24,
                max_documents: 64,
                max_aliases: 100,
                max_anchors: 100,
                max_merge_keys: 100,
            },
            alias_limits: serde_saphyr::alias_limits! {
                max_total_replayed_events: 20_000,
                max_replay_stack_depth: 16,
            },
            strict_booleans: true,
            non_finite_float_policy: serde_saphyr::NonFiniteFloatPolicy::AsString,
            leading_zero_numbers_as_strings: true,
            underscored_numbers_as_strings: true,
            ignore_binary_tag_for_string: true,
            with_snippet: false,
        };
        let documents = serde_saphyr::from_multiple_with_options(text.as_str(), options)
            .map_err(|error| refusal::explain(text, &error))?;
        let documents = Self {
            source: text.source.clone(),
            documents,
        };
        if documents.documents.is_empty() {
            return Err(documents.nothing());
        }
        Ok(documents)
    }

    /// The top of each document.
    pub(super) fn iter(&self) -> impl Iterator<Item = Field<'_>> {
        self.documents
            .iter()
            .map(|node| Field::top(&self.source, node))
    }

    /// The first document.
    ///
    /// # Errors
    /// Never for parsed documents, which are not empty.
    pub(super) fn first(&self) -> Result<Field<'_>, DiscoverError> {
        self.iter().next().ok_or_else(|| self.nothing())
    }

    fn nothing(&self) -> DiscoverError {
        DiscoverError::unusable(self.source.kind, &self.source.path, "it holds no document")
    }
}
