//! Results that stay word for word because of their tool, or of a mark of the app on them (`X4`): their messages are pinned as
//! they are appended.

use crate::context::ExchangePart;
use crate::error::{Error, Result};
use crate::log::SessionGuard;
use crate::message::{Mark, Message};
use crate::policy::{KeepResults, ToolPolicies};
use std::collections::HashMap;

/// Messages with calls that are looked at for the tool of a result: calls are answered soon.
const NEAR: usize = 16;

/// Where a mark stands.
const FIELD: &str = "contextCompactor.keep";

/// The tools of the calls that results may answer.
pub(super) struct KeptTools<'p> {
    policies: &'p ToolPolicies,
    /// By the calls' ids; of an id that comes again the newest. Empty where no tool's results are kept.
    tools: HashMap<String, String>,
}

impl<'p> KeptTools<'p> {
    /// Those of the context.
    pub(super) fn of(policies: &'p ToolPolicies, guard: &SessionGuard) -> Result<Self> {
        let mut tools = HashMap::new();
        if policies.keep_any() {
            let context = guard.context();
            let calling = context.newest().filter(|(_, item)| item.size.calls > 0).take(NEAR);
            for (_, item) in calling.collect::<Vec<_>>().into_iter().rev() {
                let calls = item.exchange(guard.format())?.iter().filter_map(ExchangePart::call);
                tools.extend(calls.map(|call| (call.id.to_string(), call.name.to_string())));
            }
        }
        Ok(KeptTools { policies, tools })
    }

    /// Notes the calls of a message; true when it holds a result that is kept.
    ///
    /// Errors: [`crate::Code::InvalidMessage`] for a mark that says nothing.
    pub(super) fn note(&mut self, index: usize, message: &Message<'_>) -> Result<bool> {
        if self.policies.keep_any() {
            self.tools.extend(message.calls().map(|call| (call.id.to_string(), call.name.to_string())));
        }
        let mut is_kept = false;
        for result in message.results() {
            if result.mark == Some(Mark::Unknown) {
                return Err(Error::message(index, FIELD, "must be \"always\" or \"disposable\""));
            }
            let tool = self.tools.get(result.call_id.as_ref());
            is_kept |= result.mark == Some(Mark::Always)
                || tool.is_some_and(|tool| self.policies.keep(tool) == Some(KeepResults::Always));
        }
        Ok(is_kept)
    }
}
