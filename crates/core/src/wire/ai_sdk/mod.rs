//! Vercel AI SDK: UI messages and model messages.

mod tools;

use super::{Author, Change, Evidence, Problem, Repaired, Wire};
use crate::error::{Error, Result};
use crate::message::Message;
use serde_json_borrow::Value;

pub(super) struct AiSdk;

impl Wire for AiSdk {
    fn evidence(&self, _messages: &[Value<'_>]) -> Evidence {
        Evidence::Against
    }

    fn read<'a>(&self, index: usize, _message: &'a Value<'a>) -> Result<Message<'a>> {
        Err(Error::message(index, "", "not readable yet"))
    }

    fn text_message(&self, author: Author, text: &str, _id: &str, _like: Option<&Value<'_>>) -> String {
        super::plain_message(author, text)
    }

    fn with_result_text(&self, _message: &Value<'_>, _nth: usize, _text: &str) -> Option<String> {
        None
    }

    fn validate(&self, _messages: &[Value<'_>], _strict: bool) -> Vec<Problem> {
        Vec::new()
    }

    fn repair(&self, messages: &[Value<'_>]) -> (Vec<Repaired>, Vec<Change>) {
        ((0..messages.len()).map(Repaired::Keep).collect(), Vec::new())
    }
}
