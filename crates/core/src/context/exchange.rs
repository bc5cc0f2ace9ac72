//! What the messages of a context call and answer: found once for each, whatever asks for it how often.

use super::{Item, Size};
use crate::error::Result;
use crate::message::{BoundMessage, Mark, Message, MessageLink, Pairing, Part, ToolResult};
use crate::wire::{self, Format};
use std::cell::OnceCell;
use std::rc::Rc;

/// What was found of a message; an item that is made of another takes it along as long as the text is the same.
#[derive(Debug, Clone)]
pub(super) struct KnownExchange(Option<Rc<OnceCell<FoundExchange>>>);

#[derive(Debug)]
struct FoundExchange {
    parts: Vec<ExchangePart>,
    is_reasoning: bool,
    has_compaction: bool,
}

impl KnownExchange {
    /// Of a message of this size: one that is not bound to others has no exchange.
    pub(super) fn of(size: &Size) -> Self {
        KnownExchange(size.is_bound.then(Rc::default))
    }
}

impl FoundExchange {
    fn of(message: &Message<'_>) -> Self {
        FoundExchange {
            parts: message.parts.iter().filter_map(ExchangePart::of).collect(),
            is_reasoning: message.is_reasoning(),
            has_compaction: message.has_compaction(),
        }
    }
}

/// It follows from the text.
impl PartialEq for KnownExchange {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A call or a result of a message, or what else binds it to others.
#[derive(Debug)]
pub(crate) enum ExchangePart {
    Call(Rc<KnownCall>),
    Result {
        call_id: Box<str>,
        is_error: bool,
        is_disposable: bool,
        /// Its lines as numbers, where somebody looked.
        lines: OnceCell<Box<[u64]>>,
    },
    /// A block of the provider's that another one closes.
    Opens(Box<str>),
    /// The one that closes it.
    Closes(Box<str>),
    /// A block that stands for a message which only the provider has.
    Refers,
}

impl ExchangePart {
    fn of(part: &Part<'_>) -> Option<Self> {
        match part {
            Part::ToolCall(call) => Some(ExchangePart::Call(Rc::new(KnownCall {
                id: (&*call.id).into(),
                tool: call.name.to_lowercase().into(),
                name: (&*call.name).into(),
                arguments: (&*call.arguments).into(),
                caller: call.caller.as_deref().map(Into::into),
                facts: OnceCell::new(),
            }))),
            Part::ToolResult(ToolResult { call_id, is_error, mark, .. }) => Some(ExchangePart::Result {
                call_id: (&**call_id).into(),
                is_error: *is_error,
                is_disposable: *mark == Some(Mark::Disposable),
                lines: OnceCell::new(),
            }),
            Part::Opaque { tie: Pairing::Opens(id), .. } => Some(ExchangePart::Opens((&**id).into())),
            Part::Opaque { tie: Pairing::Closes(id), .. } => Some(ExchangePart::Closes((&**id).into())),
            Part::Opaque { tie: Pairing::Refers, .. } => Some(ExchangePart::Refers),
            _ => None,
        }
    }

    fn link(&self) -> MessageLink<'_> {
        match self {
            ExchangePart::Call(call) => MessageLink::Call(&call.id, call.caller.as_deref()),
            ExchangePart::Result { call_id, .. } => MessageLink::Result(call_id),
            ExchangePart::Opens(id) => MessageLink::Opens(id),
            ExchangePart::Closes(id) => MessageLink::Closes(id),
            ExchangePart::Refers => MessageLink::Refers,
        }
    }

    /// The call.
    pub(crate) fn call(&self) -> Option<&KnownCall> {
        if let ExchangePart::Call(call) = self { Some(call) } else { None }
    }

    /// The lines of a result.
    pub(crate) fn lines(&self) -> Option<&OnceCell<Box<[u64]>>> {
        if let ExchangePart::Result { lines, .. } = self { Some(lines) } else { None }
    }

    /// The id of the call that it answers.
    pub(crate) fn answers(&self) -> Option<&str> {
        if let ExchangePart::Result { call_id, .. } = self { Some(call_id) } else { None }
    }
}

/// A call of a message.
#[derive(Debug)]
pub(crate) struct KnownCall {
    pub(crate) id: Box<str>,
    /// The tool's name, in lower case.
    pub(crate) tool: Box<str>,
    /// The tool's name as it was given.
    pub(crate) name: Box<str>,
    /// The arguments as JSON text.
    pub(crate) arguments: Box<str>,
    /// The call whose code made it (programmatic tool calling).
    pub(crate) caller: Option<Box<str>>,
    /// What the arguments say, where somebody looked.
    pub(crate) facts: OnceCell<CallFacts>,
}

/// What the arguments of a call say.
#[derive(Debug)]
pub(crate) struct CallFacts {
    /// What it looks at: the tool, and what of the arguments says what.
    pub(crate) source: String,
    /// What it is named by; empty where nothing names it.
    pub(crate) named: String,
    /// The files that it reads or changes.
    pub(crate) files: Vec<TouchedFile>,
}

/// A file that a call reads or changes.
#[derive(Debug)]
pub(crate) struct TouchedFile {
    pub(crate) path: String,
    pub(crate) changes: bool,
}

impl Item {
    fn found(&self, format: Format) -> Result<Option<&FoundExchange>> {
        let KnownExchange(Some(known)) = &self.known else { return Ok(None) };
        if let Some(known) = known.get() {
            return Ok(Some(known));
        }
        let index = self.origin.place().map_or(0, |place| place.index);
        let value = wire::parse(index, &self.body)?;
        let message = format.wire().read(index, &value)?;
        Ok(Some(known.get_or_init(|| FoundExchange::of(&message))))
    }

    /// Its calls and results, and what else binds it to others, in their order.
    pub(crate) fn exchange(&self, format: Format) -> Result<&[ExchangePart]> {
        Ok(self.found(format)?.map_or(&[], |found| &found.parts))
    }

    /// What binds it to others, for whoever cuts a history.
    pub(crate) fn bound(&self, format: Format) -> Result<BoundMessage<'_>> {
        let found = self.found(format)?;
        Ok(BoundMessage {
            role: self.size.role,
            is_reasoning: found.is_some_and(|found| found.is_reasoning),
            has_compaction: found.is_some_and(|found| found.has_compaction),
            links: found.map_or_else(Vec::new, |found| found.parts.iter().map(ExchangePart::link).collect()),
        })
    }
}
