//! What the messages of a context call and answer: found once for each, whatever asks for it how often.

use super::{Item, Size};
use crate::error::Result;
use crate::message::{Mark, Part, ToolResult};
use crate::wire::{self, Format};
use std::cell::OnceCell;
use std::rc::Rc;

/// What was found of a message; an item that is made of another takes it along as long as the text is the same.
#[derive(Debug, Clone)]
pub(super) struct KnownExchange(Option<Rc<OnceCell<Vec<ExchangePart>>>>);

impl KnownExchange {
    /// Of a message of this size: only one with calls or results has an exchange.
    pub(super) fn of(size: &Size) -> Self {
        KnownExchange((size.calls + size.results > 0).then(Rc::default))
    }
}

/// It follows from the text.
impl PartialEq for KnownExchange {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// A call or a result of a message.
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
}

impl ExchangePart {
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
    /// The code of another call made it (programmatic tool calling).
    pub(crate) is_by_code: bool,
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
    /// Its calls and results, in their order.
    pub(crate) fn exchange(&self, format: Format) -> Result<&[ExchangePart]> {
        let KnownExchange(Some(known)) = &self.known else { return Ok(&[]) };
        if let Some(known) = known.get() {
            return Ok(known);
        }
        let index = self.origin.place().map_or(0, |place| place.index);
        let value = wire::parse(index, &self.body)?;
        let message = format.wire().read(index, &value)?;
        let parts = message.parts.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(ExchangePart::Call(Rc::new(KnownCall {
                id: (&*call.id).into(),
                tool: call.name.to_lowercase().into(),
                name: (&*call.name).into(),
                arguments: (&*call.arguments).into(),
                is_by_code: call.caller.is_some(),
                facts: OnceCell::new(),
            }))),
            Part::ToolResult(ToolResult { call_id, is_error, mark, .. }) => Some(ExchangePart::Result {
                call_id: (&**call_id).into(),
                is_error: *is_error,
                is_disposable: *mark == Some(Mark::Disposable),
                lines: OnceCell::new(),
            }),
            _ => None,
        });
        Ok(known.get_or_init(|| parts.collect()))
    }
}
