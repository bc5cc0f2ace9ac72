//! An earlier context made the current one again. The log and the views keep everything: what was said since is left
//! behind, and can be come back to.

use super::context::{Item, Place, Splice};
use super::held::Held;
use super::ledger;
use super::operations::Session;
use super::record::{Cause, Kind};
use super::state::{Change, State};
use super::stored::{log_items, log_page, row_at, view_items};
use crate::error::{Code, Error, Result};
use crate::message::{Exchanges, Message};
use crate::step::{Io, Machine};
use crate::wire;
use serde::{Deserialize, Serialize};
use std::rc::Rc;

/// Which messages of the log are the session's history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Branch {
    /// Messages of the log.
    pub messages: usize,
    /// Those that a rewind left behind: index of the first, index behind the last.
    pub rewound: Vec<(usize, usize)>,
}

impl Session {
    /// Makes the context what it was just before message `index` of the log, counted as [`Session::explain`] does. What was
    /// said since stays in the log.
    ///
    /// Errors: [`Code::InvalidOption`] naming an index that works, for one that does not or that is inside an exchange.
    pub fn rewind(&self, index: usize) -> Machine<()> {
        let slot = self.slot.clone();
        Machine::new(move |io| async move { rewind(&io, &slot.take()?, index).await })
    }

    /// What of the log is not in the session's history, for who holds the messages by their index.
    pub fn branch(&self) -> Result<Branch> {
        self.slot.look(|state| Branch { messages: state.row.messages, rewound: state.row.rewound.clone() })
    }
}

/// What the log says of views that made an earlier context the current one.
const RETURNS: [&str; 2] = [REWIND, "restore"];
const REWIND: &str = "rewind";

/// Makes the context what it was just before message `index` of the log was appended: the view of that time, and what
/// stood behind it. It counts messages as `explain` does, those that were left behind too; so every point of the past can
/// be gone back to, also one on another branch. The goal and the session's counts go on.
///
/// Errors: [`Code::InvalidOption`] for an index that there is not, or inside an exchange, naming the next that works.
async fn rewind(io: &Io, held: &Held, index: usize) -> Result<()> {
    let (messages, floor) = {
        let state = held.state();
        (state.row.messages, state.row.parent.as_ref().map_or(0, |parent| parent.floor))
    };
    if index > messages {
        return Err(Error::option("index", format!("the session has {messages} messages, not {index}")));
    }
    if index < floor {
        let what = format!(
            "the first {floor} messages came from the parent with a summary before them; rewind to {floor} or later"
        );
        return Err(Error::option("index", what));
    }
    if index == messages {
        return Ok(());
    }
    let point = before(io, held, index).await?;
    let items = context_at(io, held, point).await?;
    check_whole(io, held, point, &items).await?;
    return_to(io, held, items, REWIND).await
}

/// The place of message `index` in the log: its row is the last that counts no more messages before itself.
async fn before(io: &Io, held: &Held, index: usize) -> Result<Place> {
    let (sid, mut behind) = (held.state().sid.clone(), held.state().row.next_seq);
    let mut seq = index as u64;
    while behind - seq > 1 {
        let middle = seq + (behind - seq) / 2;
        let row = log_page(io, &sid, middle, middle + 1).await?;
        let is_before = match row.first() {
            Some(bytes) => row_at(bytes, middle)?.n <= index,
            None => false,
        };
        if is_before { seq = middle } else { behind = middle }
    }
    Ok(Place { seq, index })
}

/// The context as it was when the log had the rows before `point.seq`, `point.index` messages among them.
pub(crate) async fn context_at(io: &Io, held: &Held, point: Place) -> Result<Vec<Item>> {
    let sid = held.state().sid.clone();
    // A row of the log is a message or the note of a view.
    let generation = point.seq - point.index as u64;
    let (mut unread, to) = view_items(io, &sid, generation).await?;
    unread.extend(log_items(io, &sid, to, point.seq).await?);
    let mut copy = held.state().clone();
    copy.items(io, unread).await
}

/// Makes `items`, a context of the past, the current one (T3). Messages that it does not account for are left behind, those
/// that another tab appends meanwhile too. `rung` is one of [`RETURNS`].
pub(crate) async fn return_to(io: &Io, held: &Held, items: Vec<Item>, rung: &str) -> Result<()> {
    let tokens: usize = items.iter().map(|item| item.size.tokens).sum();
    let change = |state: &State| {
        let rewound = ledger::missing(&items, state.row.messages);
        let cause = Cause {
            rung: rung.into(),
            trigger: "manual".into(),
            tokens_before: state.tokens(),
            tokens_after: tokens + state.fixed_tokens,
            preset: state.settings.preset.name.into(),
            prompt_version: None,
            model: None,
            input: String::new(),
        };
        let all = Splice { at: 0, remove: state.context.items().len(), insert: items.clone() };
        Rc::new(Change { rewound: Some(rewound), ..Change::new(vec![all], cause) })
    };
    held.change_with(io, &change).await?;
    held.state_mut().unsent.clear();
    Ok(())
}

/// Refuses to part an exchange: what ends with a call cannot be sent.
async fn check_whole(io: &Io, held: &Held, point: Place, items: &[Item]) -> Result<()> {
    let (sid, rows) = (held.state().sid.clone(), held.state().row.next_seq);
    // One page: no exchange is longer. Where a branch ends, what follows belongs to another.
    let mut bodies: Vec<(Option<usize>, Rc<str>)> = items
        .iter()
        .map(|item| (item.origin.place().map(|place| place.index), Rc::clone(&item.body)))
        .collect();
    for (seq, bytes) in (point.seq..).zip(log_page(io, &sid, point.seq, rows).await?) {
        let row = row_at(&bytes, seq)?;
        match row.kind {
            Kind::Message => bodies.push((Some(row.n), Rc::from(row.body.get()))),
            Kind::View if returns(row.body.get())? => break,
            Kind::View => {}
        }
    }
    let wire = held.format().wire();
    let values = bodies.iter().map(|(_, body)| wire::parse(0, body)).collect::<Result<Vec<_>>>()?;
    let messages = values.iter().map(|value| wire.read(0, value)).collect::<Result<Vec<Message<'_>>>>()?;
    let exchanges = Exchanges::of(&messages);
    let cut = items.len();
    if exchanges.is_boundary(cut) {
        return Ok(());
    }
    let index_at = |at: usize| bodies.get(at).and_then(|(index, _)| *index);
    let first = index_at(exchanges.boundary_at_or_before(cut));
    let next = (cut..bodies.len()).find(|at| exchanges.is_boundary(*at)).and_then(index_at);
    let works: Vec<String> = [first, next].into_iter().flatten().map(|index| index.to_string()).collect();
    let what = format!(
        "message {} is inside an exchange, which is kept or left as a whole; rewind to {}",
        point.index,
        works.join(" or ")
    );
    Err(Error { index: Some(point.index), ..Error::option("index", what) })
}

/// True for the note of a view that made an earlier context the current one.
fn returns(note: &str) -> Result<bool> {
    #[derive(Deserialize)]
    struct Note<'a> {
        rung: &'a str,
    }
    let note: Note<'_> = serde_json::from_str(note).map_err(|error| {
        Error::new(Code::StoreCorrupt, format!("the note of a view cannot be read: {error}"))
    })?;
    Ok(RETURNS.contains(&note.rung))
}
