//! What the app says of the results of single tools (`X4`).

use super::digest::Digest;
use super::reader::OptionReader;
use super::row::MAX;
use super::rung::Rung;
use crate::error::{Error, Result};
use serde_json_borrow::Value;
use std::collections::BTreeMap;

/// Where the policies are among the options.
const PATH: &str = "toolPolicies";

/// How long the results of a tool stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeepResults {
    /// Word for word, as what is pinned.
    Always,
    /// Only the newest tells anything.
    Newest,
    /// They tell nothing once the model has read them.
    Disposable,
}

/// Values of `keep`.
const KEEPS: [(&str, KeepResults); 3] = [
    ("always", KeepResults::Always),
    ("newest", KeepResults::Newest),
    ("disposable", KeepResults::Disposable),
];

/// Values of `digest`.
const DIGESTS: [(&str, Digest); 4] =
    [("search", Digest::Search), ("file", Digest::File), ("query", Digest::Query), ("api", Digest::Api)];

/// What becomes of the results of a tool before they are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolDigest {
    As(Digest),
    /// They stay as they are, whatever the lists of tools say.
    None,
}

/// What the app says of one tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ToolPolicy {
    pub(crate) keep: Option<KeepResults>,
    /// Longer results are stored and previewed before they are sent.
    pub(crate) max_tokens: Option<usize>,
    /// Results become this digest, or none.
    pub(crate) digest: Option<ToolDigest>,
}

/// What the app says, by the tool's name in lower case.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolPolicies(BTreeMap<String, ToolPolicy>);

impl ToolPolicies {
    /// Errors: [`crate::Code::InvalidOption`] naming the tool and the field; also for one that has no effect with these rungs.
    pub(super) fn read(value: Option<&Value<'_>>, rungs: &[Rung]) -> Result<ToolPolicies> {
        let mut policies = BTreeMap::new();
        let Some(value) = value else { return Ok(ToolPolicies(policies)) };
        let tools = value.as_object().ok_or_else(|| Error::option(PATH, "must be an object"))?;
        for (tool, value) in tools.iter() {
            let reader = OptionReader::named(value, &format!("{PATH}.{tool}"))?;
            reader.check_fields(&["keep", "maxTokens", "digest"])?;
            let policy = ToolPolicy {
                keep: reader.choice("keep", &KEEPS)?,
                max_tokens: reader.integer("maxTokens", 1, MAX)?,
                digest: match reader.get("digest") {
                    Some(Value::Bool(false)) => Some(ToolDigest::None),
                    _ => reader.choice("digest", &DIGESTS)?.map(ToolDigest::As),
                },
            };
            let needs =
                |is_given: bool, rung: Rung, key: &str, on: &str| match is_given && !rungs.contains(&rung) {
                    true => Err(reader
                        .error(key, &format!("has no effect without {on}: switch it on with {on}: {{}}"))),
                    false => Ok(()),
                };
            needs(policy.max_tokens.is_some(), Rung::Admit, "maxTokens", "admit")?;
            needs(policy.digest.is_some(), Rung::Process, "digest", "digest")?;
            let leaves = matches!(policy.keep, Some(KeepResults::Newest | KeepResults::Disposable));
            needs(leaves, Rung::Clear, "keep", "clear")?;
            if policies.insert(tool.to_lowercase(), policy).is_some() {
                return Err(Error::option(format!("{PATH}.{tool}"), "is given twice, in two letter cases"));
            }
        }
        Ok(ToolPolicies(policies))
    }

    /// What is said of a tool, whatever the letter case of its name.
    fn of(&self, tool: &str) -> Option<&ToolPolicy> {
        if self.0.is_empty() { None } else { self.0.get(&tool.to_lowercase()) }
    }

    /// How long results of the tool stay, where that is said.
    pub(crate) fn keep(&self, tool: &str) -> Option<KeepResults> {
        self.of(tool)?.keep
    }

    /// What becomes of results of the tool, where that is said.
    pub(crate) fn digest(&self, tool: &str) -> Option<ToolDigest> {
        self.of(tool)?.digest
    }

    /// Tokens above which a result of the tool is stored, where that is said.
    pub(crate) fn max_tokens(&self, tool: &str) -> Option<usize> {
        self.of(tool)?.max_tokens
    }

    /// The least of these numbers.
    pub(crate) fn least_tokens(&self) -> Option<usize> {
        self.0.values().filter_map(|policy| policy.max_tokens).min()
    }

    /// True where results of some tool stay word for word.
    pub(crate) fn keep_any(&self) -> bool {
        self.0.values().any(|policy| policy.keep == Some(KeepResults::Always))
    }
}
