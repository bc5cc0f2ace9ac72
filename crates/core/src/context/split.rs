//! Where a history may be cut (`S1.5`).

use crate::message::{BoundMessage, Exchanges, Message, Role};

/// What stays at the end of the history.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Keep {
    /// This many messages.
    Messages(usize),
    /// As many messages as fit this many tokens.
    Tokens(usize),
    /// As many messages as fit this share of the tokens.
    Fraction(f64),
}

/// A cut: messages from `boundary` on are preserved, those before it are compressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cut {
    /// First message that is preserved.
    pub boundary: usize,
    /// Where the cut was asked for, before it moved.
    pub requested: usize,
    /// Messages before the boundary that stay all the same, ascending: the leading ones of the system, pinned ones, and
    /// the provider's own compaction items, the last two with what belongs to them.
    pub pinned: Vec<usize>,
}

/// Cuts a history so that `keep` stays, of what follows the leading messages of the system. The boundary moves to an
/// earlier message as far as needed to part no tool call from its result. `tokens` are those of each message; `pinned` says
/// which messages stay wherever they are.
pub fn cut(messages: &[Message<'_>], tokens: &[usize], keep: Keep, pinned: impl Fn(usize) -> bool) -> Cut {
    let head = messages.iter().take_while(|message| message.role == Role::System).count();
    let history: Vec<_> = messages.iter().skip(head).map(BoundMessage::of).collect();
    let behind = behind(&history, tokens.get(head..).unwrap_or_default(), keep, |at| pinned(head + at));
    Cut {
        boundary: head + behind.boundary,
        requested: head + behind.requested,
        pinned: (0..head).chain(behind.pinned.into_iter().map(|at| head + at)).collect(),
    }
}

/// The same of a history without leading messages of the system.
pub(crate) fn behind(
    messages: &[BoundMessage<'_>],
    tokens: &[usize],
    keep: Keep,
    pinned: impl Fn(usize) -> bool,
) -> Cut {
    let exchanges = Exchanges::among(messages);
    let requested = requested(tokens, keep);
    // A call whose results are still to come stays: they would have nothing to answer. One that the app or the user
    // went on without gets none any more.
    let step = messages.iter().rposition(|message| matches!(message.role, Role::User | Role::System));
    let open = exchanges.unanswered.iter().find(|&&open| step.is_none_or(|step| open > step));
    let boundary = exchanges.boundary_at_or_before(open.map_or(requested, |&open| requested.min(open)));
    let mut stay = Vec::new();
    let mut start = 0;
    for end in 1..=boundary {
        if !exchanges.is_boundary(end) {
            continue;
        }
        let compacted = messages.get(start..end).unwrap_or_default().iter().any(|one| one.has_compaction);
        if compacted || (start..end).any(&pinned) {
            stay.extend(start..end);
        }
        start = end;
    }
    Cut { boundary, requested, pinned: stay }
}

fn requested(tokens: &[usize], keep: Keep) -> usize {
    let length = tokens.len();
    let by_tokens = |limit: usize| {
        let mut kept = 0_usize;
        let fits = tokens.iter().rev().take_while(|tokens| {
            kept = kept.saturating_add(**tokens);
            kept <= limit
        });
        // However long the last message is, it is what the model is to answer.
        length.saturating_sub(fits.count().max(1))
    };
    match keep {
        Keep::Messages(count) => length.saturating_sub(count),
        Keep::Tokens(limit) => by_tokens(limit),
        Keep::Fraction(fraction) => {
            let total: usize = tokens.iter().sum();
            by_tokens((total as f64 * fraction) as usize)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Part, ToolCall, ToolResult};

    fn text(role: Role) -> Message<'static> {
        Message { role, parts: vec![Part::Text("x".into())] }
    }

    fn call(ids: &[&str]) -> Message<'static> {
        let parts = ids
            .iter()
            .map(|id| {
                Part::ToolCall(ToolCall {
                    id: id.to_string().into(),
                    name: "t".into(),
                    arguments: "{}".into(),
                    caller: None,
                })
            })
            .collect();
        Message { role: Role::Assistant, parts }
    }

    fn result(id: &str) -> Message<'static> {
        let result = ToolResult {
            call_id: id.to_string().into(),
            text: "r".into(),
            is_error: false,
            media: Vec::new(),
            mark: None,
        };
        Message { role: Role::Tool, parts: vec![Part::ToolResult(result)] }
    }

    #[test]
    fn s1_5_moves_earlier_and_never_parts_a_call_from_its_results() {
        let history = [text(Role::User), call(&["a", "b"]), result("a"), result("b"), text(Role::Assistant)];
        let tokens = [1; 5];
        for (keep, boundary) in [(1, 4), (2, 1), (3, 1), (4, 1), (5, 0), (9, 0)] {
            let cut = cut(&history, &tokens, Keep::Messages(keep), |_| false);
            assert_eq!(cut.boundary, boundary, "keep {keep}");
            assert_eq!(cut.requested, 5_usize.saturating_sub(keep));
        }
    }

    #[test]
    fn keeps_by_tokens_and_by_fraction() {
        let history = [text(Role::User), text(Role::Assistant), text(Role::User), text(Role::Assistant)];
        let tokens = [10, 20, 30, 40];
        assert_eq!(cut(&history, &tokens, Keep::Tokens(70), |_| false).boundary, 2);
        assert_eq!(cut(&history, &tokens, Keep::Tokens(69), |_| false).boundary, 3);
        assert_eq!(cut(&history, &tokens, Keep::Fraction(0.4), |_| false).boundary, 3);
    }

    #[test]
    fn s1_5_a_budget_that_holds_nothing_keeps_the_last_message_with_its_exchange() {
        let history = [text(Role::User), text(Role::Assistant)];
        for keep in [Keep::Tokens(39), Keep::Tokens(0), Keep::Fraction(0.0)] {
            assert_eq!(cut(&history, &[20, 40], keep, |_| false).boundary, 1, "{keep:?}");
        }
        let history = [text(Role::User), call(&["a"]), result("a")];
        assert_eq!(cut(&history, &[20, 10, 400], Keep::Tokens(50), |_| false).boundary, 1);
        assert_eq!(cut(&[], &[], Keep::Tokens(50), |_| false).boundary, 0);
    }

    #[test]
    fn a_pinned_message_stays_with_its_whole_exchange() {
        let history = [text(Role::User), call(&["a"]), result("a"), text(Role::User), text(Role::Assistant)];
        let cut = cut(&history, &[1; 5], Keep::Messages(1), |index| index == 2);
        assert_eq!((cut.boundary, cut.pinned), (4, vec![1, 2]));
    }
}
