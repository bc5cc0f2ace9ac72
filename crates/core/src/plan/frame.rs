//! The messages that hold summaries.

use crate::clock::iso8601;
use crate::error::Result;
use crate::session::{Cover, Held, Item, Made, Origin, Place, logged, measure};
use crate::step::{Io, Whose};
use crate::summary;
use crate::wire::{self, Author};
use std::rc::Rc;

/// What the message of a summary is made of.
pub(super) struct Frame<'a> {
    /// Its id.
    pub(super) checkpoint: Rc<str>,
    /// The summary.
    pub(super) text: &'a str,
    /// What it stands for.
    pub(super) covers: Vec<Cover>,
    /// Those of them that stand in it word for word.
    pub(super) quotes: Vec<Place>,
    /// What stands behind them.
    pub(super) files: &'a str,
    /// How it was made; what the message itself decides is filled in.
    pub(super) made: Made,
}

impl Frame<'_> {
    /// The message.
    pub(super) async fn item(self, io: &Io, held: &Held) -> Result<Item> {
        let time = iso8601(self.made.created_at);
        let places = [("id", self.checkpoint.as_ref()), ("time", time.as_str())];
        let header = summary::fill(held.settings().preset.summary_marker, &places);
        let mut text = format!("{header}{}", self.text);
        let prose = text.len();
        text += &quoted(io, held, &self.quotes).await?;
        text += self.files;
        let mut item =
            message(io, held, Author::User, &text, &self.checkpoint, Origin::Acknowledgement).await?;
        let made = Made { tokens: item.size.tokens, header: header.len(), ..self.made };
        item.origin = Origin::Summary {
            checkpoint: self.checkpoint,
            covers: self.covers,
            quotes: self.quotes,
            prose,
            made: Some(Rc::new(made)),
        };
        Ok(item)
    }
}

/// The text of a summary in the message that holds it, without the quotes and the files; `bare` is without its mark.
pub(super) fn text_of(held: &Held, item: &Item, bare: bool) -> Result<String> {
    let value = wire::parse(0, &item.body)?;
    let text = held.format().wire().read(0, &value)?.text();
    let Origin::Summary { prose, made, .. } = &item.origin else { return Ok(text) };
    let header = made.as_ref().filter(|_| bare).map_or(0, |made| made.header);
    let end = if *prose > 0 { *prose } else { text.len() };
    Ok(text.get(header..end).unwrap_or(&text).to_string())
}

/// An earlier checkpoint that quotes only what `keeps` says: the user's newest messages move on (`S5.6`).
pub(super) async fn requoted(
    io: &Io,
    held: &Held,
    item: &Item,
    keeps: impl Fn(&Place) -> bool,
) -> Result<Item> {
    let Origin::Summary { checkpoint, covers, quotes, prose, made } = &item.origin else {
        return Ok(item.clone());
    };
    let kept: Vec<Place> = quotes.iter().copied().filter(|place| keeps(place)).collect();
    if kept.len() == quotes.len() {
        return Ok(item.clone());
    }
    let value: Rc<str> = Rc::clone(&item.body);
    let text = held.format().wire().read(0, &wire::parse(0, &value)?)?.text();
    let (head, tail) = text.split_at_checked(*prose).unwrap_or((&text, ""));
    let files = tail.strip_prefix(&quoted(io, held, quotes).await?).unwrap_or_default();
    let body = format!("{head}{}{files}", quoted(io, held, &kept).await?);
    let mut new = message(io, held, Author::User, &body, checkpoint, Origin::Acknowledgement).await?;
    let made = made.as_ref().map(|made| Rc::new(Made { tokens: new.size.tokens, ..Made::clone(made) }));
    let (checkpoint, covers) = (Rc::clone(checkpoint), covers.clone());
    new.origin = Origin::Summary { checkpoint, covers, quotes: kept, prose: *prose, made };
    Ok(new)
}

/// The message that keeps the roles alternating.
pub(super) async fn acknowledgement(io: &Io, held: &Held, id: &str) -> Result<Item> {
    let text = held.settings().preset.acknowledgement;
    message(io, held, Author::Assistant, text, id, Origin::Acknowledgement).await
}

/// Messages word for word, as the app handed them over.
async fn quoted(io: &Io, held: &Held, places: &[Place]) -> Result<String> {
    let mut bodies = Vec::with_capacity(places.len());
    for place in places {
        bodies.push((place.index, logged(io, held, *place).await?));
    }
    let mut values = Vec::with_capacity(bodies.len());
    for (index, body) in &bodies {
        values.push((*index, wire::parse(*index, body)?));
    }
    let format = held.format();
    let messages = values.iter().map(|(index, value)| Ok((*index, format.wire().read(*index, value)?)));
    Ok(summary::quotes(&messages.collect::<Result<Vec<_>>>()?))
}

async fn message(io: &Io, held: &Held, author: Author, text: &str, id: &str, origin: Origin) -> Result<Item> {
    let body: Rc<str> = {
        let context = held.context();
        let like = context.items().last().map(|item| wire::parse(0, &item.body)).transpose()?;
        Rc::from(held.format().wire().text_message(author, text, id, like.as_ref()))
    };
    let size = measure(io, &held.settings(), held.format(), Whose::Ours, &body).await?;
    Ok(Item { body, size, origin })
}

/// Tokens of messages.
pub(super) fn tokens_of(items: &[Item]) -> usize {
    items.iter().map(|item| item.size.tokens).sum()
}
