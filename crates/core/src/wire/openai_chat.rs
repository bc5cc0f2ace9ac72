//! to be written
use super::*;
pub(super) struct OpenaiChat;
