//! What to send now. A summary is made before that, or, where the app asks for it and there is room, while the
//! conversation goes on: the messages that it stands for are frozen meanwhile, and one commit takes them out and keeps
//! what came after them.

use super::{LIVE_TEXT, OutItem, Session, begin_step, count_fixed};
use crate::compaction::{self, ClimbPart, Climbed, CompactionResult, Edit, Run};
use crate::error::{Code, Error, ErrorParts, Result};
use crate::log::sent::PromptFront;
use crate::log::{SessionGuard, price};
use crate::policy::Trigger;
use crate::session::append::{AppendInput, append};
use crate::session::live::{LiveFacts, TO_LIVE};
use crate::session::sendable::{self, Sending};
use crate::session::usage::ContextUsage;
use crate::step::{CodeStage, Effect, Io, Machine, Notice};
use serde::Serialize;
use std::rc::Rc;

/// What to send now.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Prepared {
    /// Which `prepare` of this session in memory it is, from 1.
    pub nth: u64,
    /// Items at the beginning that are those of the `prepare` that was named ([`Session::prepare_since`]); 0 otherwise.
    pub kept: usize,
    /// What of the context can be sent: the items behind those.
    pub items: Vec<OutItem>,
    /// How full the window is with it.
    pub usage: ContextUsage,
    /// What was changed on the way.
    pub edits: Vec<Edit>,
    /// The session would act on the context as it is now (`S1.2`).
    pub still_exceeds_threshold: bool,
    /// The store has the context that this is made of ([`CompactionResult::stored`]).
    pub stored: bool,
    /// What the summary rung did, when it was tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<CompactionResult>,
    /// A summary is due and is left to [`Session::summarise_later`].
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub put_off: bool,
    /// What belongs to the end of the system prompt: the goal, as long as it is worked on (`S5.13`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    /// The app's live facts, behind the items (`X12`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveFacts>,
    /// Fields of the request by which the provider compacts (`X10`): JSON text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<String>,
}

/// What a summary that was put off led to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Later {
    /// What was changed.
    pub edits: Vec<Edit>,
    /// What the summary rung did; nothing when it was not due any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<CompactionResult>,
}

impl Session {
    /// The messages to send now, made to fit as the preset says. `fixed` are texts that go with them: the system prompt
    /// first, then the tools' definitions, then live facts.
    pub fn prepare(&self, trigger: Trigger, fixed: Vec<String>) -> Machine<Prepared> {
        self.prepare_since(trigger, fixed, 0)
    }

    /// The same for a host that has the items of an earlier one: of a context that was only added to since, what was added.
    /// `since` is [`Prepared::nth`] of that; 0 is none.
    pub fn prepare_since(&self, trigger: Trigger, fixed: Vec<String>, since: u64) -> Machine<Prepared> {
        let slot = self.slot.clone();
        Machine::new(move |io| async move {
            let guard = slot.take()?;
            guard.catch_up(&io).await?;
            prepare(&io, &guard, trigger, fixed, since).await
        })
    }

    /// [`Session::append`], then [`Session::prepare_since`]. Between the two the host learns where the messages are, and says
    /// what goes with them ([`Effect::Appended`]). What others wrote is not read again: the commit compared it.
    pub fn append_and_prepare(
        &self,
        bodies: Vec<Rc<str>>,
        trigger: Trigger,
        since: u64,
    ) -> Machine<Prepared> {
        let slot = self.slot.clone();
        Machine::new(move |io| async move {
            let guard = slot.take()?;
            let (places, _) = append(&io, &guard, &bodies, AppendInput::default()).await?;
            let fixed = io.appended(places, guard.format()).await?;
            if bodies.is_empty() {
                guard.catch_up(&io).await?;
            }
            prepare(&io, &guard, trigger, fixed, since).await
        })
    }

    /// The same beside [`Session::summarise_later`], with the context as it is until that has ended. Nothing when that has
    /// to be waited for, as the context does not fit without it, or when it has ended.
    pub fn prepare_beside(&self, fixed: Vec<String>, since: u64) -> Machine<Option<Prepared>> {
        let slot = self.slot.clone();
        Machine::new(move |io| async move {
            let guard = slot.take()?;
            guard.catch_up(&io).await?;
            let front = fix(&io, &guard, fixed).await?;
            let fits = guard.tokens() <= guard.settings().hard_limit && !guard.state().has_too_many_bytes();
            if !slot.is_in_background() || !fits {
                return Ok(None);
            }
            prepared(&io, &guard, None, since, front).await.map(Some)
        })
    }

    /// Makes the summary that a prepare put off; messages are appended and prepared meanwhile.
    pub fn summarise_later(&self) -> Machine<Later> {
        let slot = self.slot.clone();
        Machine::new(|io| async move {
            let guard = slot.take()?;
            let _background = slot.begin_background();
            let run = Run::new(&io, &guard, ClimbPart::Later, Trigger::Auto);
            let done = compaction::climb(&run).await?;
            Ok(Later { edits: done.edits, result: done.result })
        })
    }
}

/// What to send of what is known now.
async fn prepare(
    io: &Io,
    guard: &SessionGuard,
    trigger: Trigger,
    fixed: Vec<String>,
    since: u64,
) -> Result<Prepared> {
    compaction::recognize(io, guard).await?;
    let front = fix(io, guard, fixed).await?;
    let part = if guard.settings().background { ClimbPart::Now } else { ClimbPart::Whole };
    let trigger = guard.state().wished(trigger);
    let run = Run::new(io, guard, part, trigger);
    prepared(io, guard, Some(run), since, front).await
}

/// What goes with the messages.
pub(super) struct Around {
    /// The text that goes to the end of the system prompt.
    goal: Option<String>,
    /// What then goes before the messages.
    pub(super) front: Rc<PromptFront>,
    /// What goes behind them, in its fence; empty for nothing.
    live: String,
    /// That says how much room is left.
    tells_room: bool,
}

/// Counts what goes with the messages.
pub(super) async fn fix(io: &Io, guard: &SessionGuard, mut texts: Vec<String>) -> Result<Around> {
    let given = texts.get(LIVE_TEXT).cloned().unwrap_or_default();
    if !given.is_empty() {
        set_live(&mut texts, (TO_LIVE.enter(io).await?.fenced)(guard, &given)?);
    }
    let goal = guard.state().goal_text();
    let count = async |texts: &[String]| {
        let fixed = count_fixed(io, &guard.settings(), guard.format(), texts, goal.as_deref()).await?;
        guard.state_mut().set_fixed(fixed);
        Ok::<_, Error>(())
    };
    count(&texts).await?;
    let mut tells_room = false;
    let notice = guard.state_mut().notice_of_room();
    if let Some(notice) = notice {
        let live = if given.is_empty() { notice } else { format!("{given}\n\n{notice}") };
        // Where there is no room for both, the app's own facts go before; where its code cannot be loaded, the prompt goes without.
        let fenced = TO_LIVE.enter(io).await.and_then(|to_live| (to_live.fenced)(guard, &live));
        if let Ok(live) = fenced {
            set_live(&mut texts, live);
            count(&texts).await?;
            tells_room = true;
        }
    }
    let mut texts = texts.into_iter();
    let (prompt, tools, live) = (texts.next(), texts.next().unwrap_or_default(), texts.next());
    guard.state_mut().note_tools(&tools);
    let mut front = Rc::default();
    if guard.settings().continues_prompts {
        let system = prompt.as_deref().into_iter().chain(goal.as_deref());
        let system = system.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n");
        front = Rc::new(PromptFront { system, tools });
    }
    Ok(Around { goal, front, live: live.unwrap_or_default(), tells_room })
}

fn set_live(texts: &mut Vec<String>, live: String) {
    texts.resize(texts.len().max(LIVE_TEXT + 1), String::new());
    if let Some(text) = texts.get_mut(LIVE_TEXT) {
        *text = live;
    }
}

/// Climbs the ladder. Where that cannot be loaded, what fits is sent as it is, and the next prepare asks for it again.
async fn climb(io: &Io, guard: &SessionGuard, run: &Run<'_>) -> Result<Climbed> {
    match compaction::climb(run).await {
        Err(error)
            if error.code == Code::StageUnavailable
                && run.trigger == Trigger::Auto
                && guard.view().fits() =>
        {
            let ErrorParts { code, message, .. } = error.into_parts();
            io.tell(Effect::Notify(Notice::Warning { code, message }));
            Ok(Climbed::default())
        }
        climbed => climbed,
    }
}

/// What to send after a climb; without one when somebody is at it already.
async fn prepared(
    io: &Io,
    guard: &SessionGuard,
    run: Option<Run<'_>>,
    since: u64,
    Around { goal, front, live, tells_room }: Around,
) -> Result<Prepared> {
    guard.state_mut().check_cost(io)?;
    let request = guard.state().server_request()?;
    let is_step = begin_step(&mut guard.state_mut());
    guard.store_or_warn(io).await?;
    let priced = price::ask(io, guard, is_step).await?;
    let mut done = Climbed::default();
    if let Some(run) = run {
        if compaction::is_due(&guard.view(), run.trigger) {
            let call = if run.trigger == Trigger::Model { guard.state().model_call() } else { None };
            done = climb(io, guard, &run).await?;
            if call.is_some() {
                guard.state_mut().began_anew = call;
            }
        } else if guard.tokens() >= guard.state().threshold() / 10 * 7 {
            // The first compaction is not to wait for the ladder.
            io.tell(Effect::Prefetch(CodeStage::Compact));
        }
        compaction::settle_reasoning(io, guard, run.trigger).await?;
    }
    guard.state_mut().check_bytes(io)?;
    let Sending { nth, kept, items, usage, mended } = sendable::send(io, guard, since, front).await?;
    let live =
        if live.is_empty() { None } else { (TO_LIVE.enter(io).await?.placed)(io, guard, &live, &items)? };
    guard.state_mut().told_room |= tells_room && live.is_some();
    guard.state_mut().hand_out();
    guard.state_mut().note_prompt();
    if let Some(now) = priced {
        guard.state_mut().pay(now, is_step);
    }
    let Climbed { mut edits, result, put_off, .. } = done;
    edits.extend(mended);
    let still_exceeds_threshold = guard.state().is_due();
    let stored = guard.state().is_stored() != Some(false);
    Ok(Prepared {
        nth,
        kept,
        items,
        usage,
        edits,
        still_exceeds_threshold,
        stored,
        result,
        put_off,
        goal,
        live,
        request,
    })
}
