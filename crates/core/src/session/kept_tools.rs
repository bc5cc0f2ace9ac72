//! Results that stay word for word because of their tool (`X4`): their messages are pinned as they are appended.

use crate::context::ExchangePart;
use crate::error::Result;
use crate::log::SessionGuard;
use crate::message::Message;
use crate::policy::{KeepResults, ToolPolicies};
use std::collections::HashMap;

/// Messages with calls that are looked at for the tool of a result: calls are answered soon.
const NEAR: usize = 16;

/// The tools of the calls that results may answer.
pub(super) struct KeptTools<'p> {
    policies: &'p ToolPolicies,
    /// By the calls' ids; of an id that comes again the newest.
    tools: HashMap<String, String>,
}

impl<'p> KeptTools<'p> {
    /// Those of the context; nothing where no tool's results are kept.
    pub(super) fn of(policies: &'p ToolPolicies, guard: &SessionGuard) -> Result<Option<Self>> {
        if !policies.keep_any() {
            return Ok(None);
        }
        let context = guard.context();
        let calling = context.newest().filter(|(_, item)| item.size.calls > 0).take(NEAR);
        let mut tools = HashMap::new();
        for (_, item) in calling.collect::<Vec<_>>().into_iter().rev() {
            let calls = item.exchange(guard.format())?.iter().filter_map(ExchangePart::call);
            tools.extend(calls.map(|call| (call.id.to_string(), call.name.to_string())));
        }
        Ok(Some(KeptTools { policies, tools }))
    }

    /// Notes the calls of a message; true when it holds a result that is kept.
    pub(super) fn note(&mut self, message: &Message<'_>) -> bool {
        for call in message.calls() {
            self.tools.insert(call.id.to_string(), call.name.to_string());
        }
        message.results().any(|result| {
            let tool = self.tools.get(result.call_id.as_ref());
            tool.is_some_and(|tool| self.policies.keep(tool) == Some(KeepResults::Always))
        })
    }
}
