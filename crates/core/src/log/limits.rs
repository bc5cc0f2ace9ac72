//! Whether a prompt may go out: what the session cost (`X13`), and how many bytes it has (`X5`), against the app's limits.

use super::state::State;
use crate::error::{Code, Error, Result};
use crate::policy::cost::{Cost, usd};
use crate::step::{Effect, Io, Notice};
use crate::text::grouped;

/// Prompts that go out without a report before the app is told that none comes.
const UNREPORTED: u64 = 2;

/// What the app was told.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LimitsTold {
    /// The session has cost the limit.
    cost: bool,
    /// Nothing is reported.
    unreported: bool,
    /// The prompt has more bytes than the limit, and the one before had.
    bytes: bool,
}

crate::wire::record!(LimitsTold { cost = "cost", unreported = "unreported", bytes = "bytes" });

impl State {
    /// Asks, before a prompt is made, whether the session may cost more.
    ///
    /// Errors: [`Code::LimitReached`] where the app wants it.
    pub(crate) fn check_cost(&mut self, io: &Io) -> Result<()> {
        let Some(limit) = self.settings.limits.cost else { return Ok(()) };
        let spent = self.spent().cost;
        if spent < limit {
            if self.unreported() >= UNREPORTED && !std::mem::replace(&mut self.limits_told.unreported, true) {
                let message = "limits.usd counts what is reported, and no usage of the last prompts was: pass each answer's usage to \
                               context.recordUsage or to step";
                warn(io, Code::InvalidOption, message.into());
            }
            return Ok(());
        }
        let message = format!(
            "the calls of this session have cost {}, and limits.usd is {}: raise it, or go on in another session",
            dollars(spent),
            dollars(limit)
        );
        self.reached(io, "limits.usd", message, |told| &mut told.cost)
    }

    /// True where the prompt has more bytes than it may.
    pub(crate) fn has_too_many_bytes(&self) -> bool {
        self.settings.limits.bytes.is_some_and(|limit| self.context.bytes() > limit)
    }

    /// Asks, before a prompt goes out, whether it may have so many bytes: nothing more can leave it.
    ///
    /// Errors: [`Code::LimitReached`] where the app wants it.
    pub(crate) fn check_bytes(&mut self, io: &Io) -> Result<()> {
        let Some(limit) = self.settings.limits.bytes else { return Ok(()) };
        let bytes = self.context.bytes();
        if bytes <= limit {
            self.limits_told.bytes = false;
            return Ok(());
        }
        let message = format!(
            "the messages have {} bytes as JSON, limits.requestBytes is {}, and no image or document is left that may leave: raise the \
             limit, send smaller images, or remove messages with context.remove",
            grouped(bytes),
            grouped(limit)
        );
        self.reached(io, "limits.requestBytes", message, |told| &mut told.bytes)
    }

    /// The prompt is refused, or the app is told once.
    fn reached(
        &mut self,
        io: &Io,
        option: &str,
        message: String,
        told: fn(&mut LimitsTold) -> &mut bool,
    ) -> Result<()> {
        if self.settings.limits.refuses {
            return Err(Error::new(Code::LimitReached, message).of_field(Some(option.into())));
        }
        if !std::mem::replace(told(&mut self.limits_told), true) {
            warn(io, Code::LimitReached, message);
        }
        Ok(())
    }
}

fn warn(io: &Io, code: Code, message: String) {
    io.tell(Effect::Notify(Notice::Warning { code, message }));
}

/// Dollars with as many decimals as say something.
fn dollars(cost: Cost) -> String {
    let usd = usd(cost);
    if usd < 0.1 { format!("${usd:.6}") } else { format!("${usd:.2}") }
}
