//! What takes the place of summarised messages: the message of the summary, which stands in the conversation and never in
//! the system prompt, whose cached prefix stays valid (`S3.5`), and what must stand around it.

use super::cut::Proposal;
use super::offload;
use super::redaction::without_secrets;
use super::replace::ends;
use crate::clock::iso8601;
use crate::context::{
    CoveredRange, Item, MessageSource, Offload, Origin, PinProposal, Place, Placeholder, SummaryMeta,
};
use crate::error::{Code, Error, Result};
use crate::keys::ids;
use crate::log::{SessionGuard, State, carried, logged, measure};
use crate::message::{Message, Part, Role};
use crate::policy::PinProposals;
use crate::redact::Erasure;
use crate::step::{Effect, Io, LogLevel, Notice};
use crate::summary;
use crate::wire::{self, Author, ERASED, Repaired};
use std::collections::HashSet;
use std::rc::Rc;

/// What takes the place of the messages: those of them that stay, the message that holds the summary, and what must
/// stand around them. What is new must be smaller than what it replaces, by the counter that decides (`S5.16`).
/// `started` is when the summary was begun.
pub(super) async fn candidate(
    io: &Io,
    held: &SessionGuard,
    proposal: &Proposal,
    text: &str,
    files: &str,
    started: u64,
) -> Result<Vec<Item>> {
    let settings = held.settings();
    let checkpoint: Rc<str> = {
        let state = held.state();
        let generation = state.row.generation.to_le_bytes();
        let id = ids::id(&[b"checkpoint", state.row.secret.as_bytes(), &generation, text.as_bytes()]);
        Rc::from(format!("cp_{id}"))
    };
    let made = SummaryMeta {
        level: proposal.level,
        number: held.state().row.compressions,
        created_at: started,
        original_tokens: proposal.replaced_tokens,
        counted_tokens: proposal.counted_tokens,
        model: settings.summariser_model().map(str::to_string),
        proposed: carried(&proposal.unanswered, &settings, proposal.replaced_tokens),
        rules: rules(proposal.compress.iter()),
        waiting: waiting(proposal),
        ..SummaryMeta::default()
    };
    let frame = Frame {
        checkpoint: Rc::clone(&checkpoint),
        author: proposal.author,
        text,
        covers: proposal.covers(),
        quotes: proposal.quotes.clone(),
        files,
        made,
    };
    let mut written = vec![frame.item(io, held).await?];
    if proposal.acknowledge {
        written.push(acknowledgement(io, held, &format!("{checkpoint}_ack")).await?);
    }
    let keeps = |place: &Place, of_system: bool| {
        (!of_system && place.index >= proposal.quotes_from)
            || proposal.in_force.contains(&place.index)
            || held.state().is_pinned(place.index)
    };
    let mut stay = Vec::with_capacity(proposal.stay.len() + 1);
    for item in &proposal.stay {
        stay.push(requoted(io, held, item, keeps).await?);
    }
    let stayed = tokens_of(&stay);
    // An earlier checkpoint, which is the user's message too, may stand right before.
    if stay.last().is_some_and(|item| matches!(item.origin, Origin::Summary { .. })) {
        stay.push(acknowledgement(io, held, &format!("{checkpoint}_before")).await?);
    }
    let mut items = [stay, written].concat();
    if let Some(body) = opening(held, proposal, &items)? {
        let size = measure(io, &settings, held.format(), MessageSource::Ours, &body).await?;
        items.insert(0, Item { body, size, origin: Origin::Acknowledgement });
    }
    let tokens = tokens_of(&items).saturating_sub(stayed);
    if tokens >= proposal.replaced_tokens {
        return Err(Error::new(
            Code::SummaryRejected,
            format!(
                "The summary ({tokens} tokens with its frame) was not smaller than the conversation that it replaces ({} tokens). Write a much shorter one.",
                proposal.replaced_tokens
            ),
        ));
    }
    Ok(items)
}

/// The message that the format wants in front of `items` where they begin the conversation with one that stays, such
/// as the provider's own compaction.
fn opening(held: &SessionGuard, proposal: &Proposal, items: &[Item]) -> Result<Option<Rc<str>>> {
    if proposal.head > 0 || proposal.stay.is_empty() {
        return Ok(None);
    }
    let values = items.iter().map(|item| wire::parse(0, &item.body)).collect::<Result<Vec<_>>>()?;
    let (repaired, _) = held.format().wire().repair(&values);
    Ok(match repaired.as_slice() {
        [
            Repaired::Replace { index: 0, json },
            Repaired::Keep(0) | Repaired::Replace { index: 0, .. },
            ..,
        ] => Some(Rc::from(json.as_str())),
        _ => None,
    })
}

/// What the message of a summary is made of.
pub(super) struct Frame<'a> {
    /// Its id.
    pub(super) checkpoint: Rc<str>,
    /// Whose message it is.
    pub(super) author: Author,
    /// The summary.
    pub(super) text: &'a str,
    /// What it stands for.
    pub(super) covers: Vec<CoveredRange>,
    /// Those of them that stand in it word for word.
    pub(super) quotes: Vec<Place>,
    /// What stands behind them.
    pub(super) files: &'a str,
    /// How it was made; what the message itself decides is filled in.
    pub(super) made: SummaryMeta,
}

impl Frame<'_> {
    /// The message.
    pub(super) async fn item(self, io: &Io, held: &SessionGuard) -> Result<Item> {
        let time = iso8601(self.made.created_at);
        let places = [("id", self.checkpoint.as_ref()), ("time", time.as_str())];
        let header = summary::fill(held.settings().preset.summary_marker, &places);
        let mut text = format!("{header}{}", self.text);
        let Quoted { text: quoted, missing } = Quoted::of(io, held, &self.quotes).await?;
        let mut quotes = self.quotes;
        for (place, error) in missing {
            let reference = ids::message_reference(&held.state().row.secret, place.index);
            tell(io, format!("message {} cannot be quoted behind the summary: {error}", place.index));
            text += &format!("\n\n[Content unavailable: {reference}]");
            quotes.retain(|quote| *quote != place);
        }
        let prose = text.len();
        let beside = format!("{}{}", self.text, self.files);
        text += &front(held, &self.made, &quotes, &quoted, &beside);
        let front = text.len() - prose;
        text += &quoted;
        text += self.files;
        let mut item =
            message(io, held, self.author, &text, &self.checkpoint, Origin::Acknowledgement).await?;
        // Where the notice is all that follows its text, both are counted at once.
        let own = text.get(..prose).filter(|own| own.len() + summary::NOTICE.len() < text.len());
        let alone = match own {
            Some(own) => {
                message(io, held, self.author, own, &self.checkpoint, Origin::Acknowledgement).await?
            }
            None => item.clone(),
        };
        let (tokens, text_tokens) = (item.size.tokens, alone.size.tokens);
        let made = SummaryMeta { tokens, text_tokens, header: header.len(), front, ..self.made };
        item.origin = Origin::Summary {
            checkpoint: self.checkpoint,
            covers: self.covers,
            quotes,
            prose,
            made: Some(Rc::new(made)),
        };
        Ok(item)
    }
}

/// The text of a summary in the message that holds it, without the quotes and the files; `bare` is without its mark.
pub(super) fn text_of(held: &SessionGuard, item: &Item, bare: bool) -> Result<String> {
    let value = wire::parse(0, &item.body)?;
    let text = held.format().wire().read(0, &value)?.text();
    let Origin::Summary { prose, made, .. } = &item.origin else { return Ok(text) };
    let header = made.as_ref().filter(|_| bare).map_or(0, |made| made.header);
    let end = if *prose > 0 { *prose } else { text.len() };
    Ok(text.get(header..end).unwrap_or(&text).to_string())
}

/// An earlier checkpoint that quotes only what `keeps` says: the user's newest messages move on (`S5.6`). What was rejected
/// leaves it.
async fn requoted(
    io: &Io,
    held: &SessionGuard,
    item: &Item,
    keeps: impl Fn(&Place, bool) -> bool,
) -> Result<Item> {
    let quotes = item.origin.quotes();
    let of_system = match quotes {
        [] => HashSet::new(),
        _ => indices_of_system(&behind(held, item)?),
    };
    let is_kept = |place: &Place| keeps(place, of_system.contains(&place.index));
    let kept: Vec<Place> = quotes.iter().copied().filter(is_kept).collect();
    let is_rejected = match &item.origin {
        Origin::Summary { made: Some(made), .. } => {
            made.proposed.iter().any(|open| held.state().is_rejected(open.index))
        }
        _ => false,
    };
    if kept.len() == quotes.len() && !is_rejected {
        Ok(item.clone())
    } else {
        with_quotes(io, held, item, kept).await
    }
}

/// A summary that quotes one more of the messages that it stands for.
pub(crate) async fn quoting(io: &Io, held: &SessionGuard, item: &Item, place: Place) -> Result<Item> {
    let mut all = item.origin.quotes().to_vec();
    all.insert(all.partition_point(|other| other.index < place.index), place);
    with_quotes(io, held, item, all).await
}

/// The message of a summary with other quotes.
async fn with_quotes(io: &Io, held: &SessionGuard, item: &Item, kept: Vec<Place>) -> Result<Item> {
    let Origin::Summary { checkpoint, covers, quotes, prose, made } = &item.origin else {
        return Ok(item.clone());
    };
    let value: Rc<str> = Rc::clone(&item.body);
    let text = held.format().wire().read(0, &wire::parse(0, &value)?)?.text();
    let (head, tail) = text.split_at_checked(*prose).unwrap_or((&text, ""));
    let before = Quoted::of(io, held, quotes).await?.text;
    let of_before = made.as_deref().cloned().unwrap_or_default();
    // An earlier release had other words before the quotes.
    let files = match tail.split_once(before.as_str()) {
        Some((_, files)) if !before.is_empty() => files,
        _ => tail.get(of_before.front..).unwrap_or(tail),
    };
    let mut now = Quoted::of(io, held, &kept).await?;
    if let Some((_, error)) = now.missing.pop() {
        return Err(error);
    }
    let mut of_now = of_before;
    of_now.proposed.retain(|open| !held.state().is_rejected(open.index));
    let front = front(held, &of_now, &kept, &now.text, &format!("{head}{files}"));
    let body = format!("{head}{front}{}{files}", now.text);
    let mut new = message(io, held, author_of(item), &body, checkpoint, Origin::Acknowledgement).await?;
    let made = Some(Rc::new(SummaryMeta { tokens: new.size.tokens, front: front.len(), ..of_now }));
    let (checkpoint, covers) = (Rc::clone(checkpoint), covers.clone());
    new.origin = Origin::Summary { checkpoint, covers, quotes: kept, prose: *prose, made };
    Ok(new)
}

/// A summary without what `erasure` takes out: sentences with something that only the message says, and its quote.
pub(crate) fn erased(
    held: &SessionGuard,
    origin: Origin,
    body: Rc<str>,
    erasure: &Erasure,
) -> Result<(Origin, Rc<str>)> {
    let Origin::Summary { checkpoint, covers, quotes, prose, made } = origin else {
        return Ok((origin, body));
    };
    let wire = held.format().wire();
    let like = wire::parse(0, &body)?;
    let read = wire.read(0, &like)?;
    let (role, text) = (read.role, read.text());
    let mut now = made.as_deref().cloned().unwrap_or_default();
    let is_open = |open: &PinProposal| {
        open.index != erasure.index && !open.constraints.iter().any(|own| erasure.is_in(own))
    };
    let gone: Vec<String> = {
        let proposed =
            now.proposed.iter().filter(|open| !is_open(open)).flat_map(|open| open.constraints.clone());
        proposed.chain(now.rules.iter().filter(|rule| erasure.is_in(rule)).cloned()).collect()
    };
    now.proposed.retain(is_open);
    now.rules.retain(|rule| !erasure.is_in(rule));
    let (head, tail) =
        text.split_at_checked(if prose > 0 { prose } else { text.len() }).unwrap_or((&text, ""));
    let (mark, own) = head.split_at_checked(now.header).unwrap_or(("", head));
    let (front, behind) = tail.split_at_checked(now.front).unwrap_or(("", tail));
    let head = format!("{mark}{}", erasure.without(own));
    let front = gone.iter().fold(front.to_string(), |front, sentence| front.replace(sentence, ERASED));
    let front = erasure.without(&front);
    let mut behind = behind.to_string();
    if let Some(quote) = summary::find_quote(&behind, erasure.index) {
        let blank = wire::parse(erasure.index, &erasure.blank)?;
        let blank = wire.read(erasure.index, &blank)?;
        behind = behind.replace(&quote, &summary::quote(erasure.index, &blank, &[]));
    }
    let behind = erasure.without(&behind);
    let erased = format!("{head}{front}{behind}");
    now.front = front.len();
    let prose = if prose > 0 { head.len() } else { 0 };
    let body = if erased == text {
        Rc::clone(&body)
    } else {
        let author = if role == Role::Assistant { Author::Assistant } else { Author::User };
        Rc::from(wire.text_message(author, &erased, &checkpoint, Some(&like)))
    };
    let made = made.map(|_| Rc::new(now));
    Ok((Origin::Summary { checkpoint, covers, quotes, prose, made }, body))
}

/// What stands between a summary and the quotes, whose text is `quoted`: that it is a record, what the user laid down and
/// neither the quotes nor `beside` say, and what came of what is quoted.
fn front(held: &SessionGuard, made: &SummaryMeta, quotes: &[Place], quoted: &str, beside: &str) -> String {
    let mut sentences: Vec<String> = Vec::new();
    if held.settings().pin_proposals == PinProposals::Keep {
        let is_quoted = |index: usize| quotes.iter().any(|place| place.index == index);
        let open = made.proposed.iter().filter(|open| !is_quoted(open.index));
        for sentence in made.rules.iter().chain(open.flat_map(|open| &open.constraints)) {
            let sentence = without_secrets(held, sentence.clone());
            if !beside.contains(&sentence) && !sentences.contains(&sentence) {
                sentences.push(sentence);
            }
        }
    }
    format!("{}{}{}", summary::NOTICE, summary::rules(&sentences), heading(quotes, quoted, made))
}

/// What holds on of sessions that these come from.
pub(super) fn rules<'i>(items: impl Iterator<Item = &'i Item>) -> Vec<String> {
    let made = items.filter_map(|item| match &item.origin {
        Origin::Summary { made: Some(made), .. } => Some(&made.rules),
        _ => None,
    });
    made.flatten().cloned().collect()
}

/// Indices of the messages of the system among quotes.
fn indices_of_system(quotes: &str) -> HashSet<usize> {
    summary::quotes_of_system(quotes).into_iter().map(|quote| quote.index).collect()
}

/// What stands behind the text of a summary.
fn behind(held: &SessionGuard, item: &Item) -> Result<String> {
    let value = wire::parse(0, &item.body)?;
    let text = held.format().wire().read(0, &value)?.text();
    let Origin::Summary { prose, .. } = &item.origin else { return Ok(String::new()) };
    Ok(text.get(*prose..).unwrap_or("").to_string())
}

/// What stands before the quotes.
fn heading(quotes: &[Place], quoted: &str, made: &SummaryMeta) -> String {
    let is_quoted = |index: &&usize| quotes.iter().any(|place| place.index == **index);
    let waiting: Vec<usize> = made.waiting.iter().filter(is_quoted).copied().collect();
    summary::quotes_heading(quotes.len(), indices_of_system(quoted).len(), &waiting)
}

/// The messages of the user that nothing of what is summarised answers: those that are quoted, and those that may be once
/// they are pinned.
fn waiting(proposal: &Proposal) -> Vec<usize> {
    let mut waiting: Vec<usize> = Vec::new();
    for item in &proposal.compress {
        match (&item.origin, item.origin.place()) {
            (Origin::Summary { made: Some(made), .. }, _) => waiting.extend(&made.waiting),
            (_, Some(place)) if item.size.role == Role::User => waiting.push(place.index),
            (_, Some(_)) if item.size.role == Role::Assistant => waiting.clear(),
            _ => {}
        }
    }
    waiting
}

/// True for references of what `covers` holds, and for those of messages that this session has.
pub(super) fn knows(state: &State, covers: &[CoveredRange], reference: &str) -> bool {
    let mut offloads = covers.iter().flat_map(|cover| &cover.offloads);
    offloads.any(|(_, offload)| offload.reference == reference)
        || ids::message_index(&state.row.secret, reference).is_some()
}

/// Whose message a summary is.
pub(super) fn author_of(item: &Item) -> Author {
    if item.size.role == Role::Assistant { Author::Assistant } else { Author::User }
}

/// The message that keeps the roles alternating.
async fn acknowledgement(io: &Io, held: &SessionGuard, id: &str) -> Result<Item> {
    let text = held.settings().preset.acknowledgement;
    message(io, held, Author::Assistant, text, id, Origin::Acknowledgement).await
}

/// Messages word for word, as the app handed them over.
struct Quoted {
    text: String,
    /// Those that can be read nowhere any more.
    missing: Vec<(Place, Error)>,
}

impl Quoted {
    /// From the log; what is damaged there, from the summary of the context that quotes it already.
    async fn of(io: &Io, held: &SessionGuard, places: &[Place]) -> Result<Quoted> {
        let (mut quotes, mut missing) = (Vec::with_capacity(places.len()), Vec::new());
        for place in places {
            match logged(io, held, *place).await {
                Ok(body) => {
                    let value = wire::parse(place.index, &body)?;
                    let mut message = held.format().wire().read(place.index, &value)?;
                    shorten(held, place, &mut message);
                    quotes.push(summary::quote(place.index, &message, &stand_ins(held, place)));
                }
                Err(error) if error.code == Code::StoreCorrupt => match standing(held, place)? {
                    Some(quote) => quotes.push(quote),
                    None => missing.push((*place, error)),
                },
                Err(error) => return Err(error),
            }
        }
        Ok(Quoted { text: summary::quotes(&quotes), missing })
    }
}

/// Tokens of a text in a quote that was too large for the context.
const SHORT: usize = 100;

/// Puts previews in the place of texts that are too large for the context.
fn shorten(held: &SessionGuard, place: &Place, message: &mut Message<'_>) {
    let state = held.state();
    let of = offloads_of(&state, place);
    let texts = message.parts.iter_mut().filter_map(|part| match part {
        Part::Text(text) => Some(text),
        _ => None,
    });
    for (nth, text) in texts.enumerate() {
        if let Some(offload) =
            of.iter().find(|offload| offload.how == Placeholder::Text && offload.nth == nth)
        {
            *text = ends(&state, &offload.reference, text, SHORT).into();
        }
    }
}

/// The offloads of a message, wherever in the context it is.
fn offloads_of(state: &State, place: &Place) -> Vec<Offload> {
    let mut found = Vec::new();
    for item in state.context.items() {
        if item.origin.place().as_ref() == Some(place) {
            found.extend_from_slice(item.origin.offloads());
        }
        if let Origin::Summary { covers, .. } = &item.origin {
            let offloads = covers.iter().flat_map(|cover| &cover.offloads);
            let own = offloads.filter(|(index, _)| *index == place.index);
            found.extend(own.map(|(_, offload)| offload.clone()));
        }
    }
    found
}

/// What stands for the results of a message that left the context before it did, by their numbers in it: it is quoted for
/// what the user said. Who pinned it wants all of it.
fn stand_ins(held: &SessionGuard, place: &Place) -> Vec<(usize, String)> {
    if held.state().is_pinned(place.index) {
        return Vec::new();
    }
    let state = held.state();
    let stands = |offload: &Offload| match state.recalls {
        true => offload::reference(&offload.reference),
        false => "[This result was too large, and is left out]".into(),
    };
    let of = offloads_of(&state, place);
    of.iter().filter(|offload| offload.is_result()).map(|offload| (offload.nth, stands(offload))).collect()
}

/// A message as a summary of the context quotes it.
fn standing(held: &SessionGuard, place: &Place) -> Result<Option<String>> {
    let context = held.context();
    let Some(item) = context.items().iter().find(|item| item.origin.quotes().contains(place)) else {
        return Ok(None);
    };
    Ok(summary::find_quote(&behind(held, item)?, place.index))
}

fn tell(io: &Io, message: String) {
    io.log(LogLevel::Warn, message.clone());
    io.tell(Effect::Notify(Notice::Warning { code: Code::StoreCorrupt, message }));
}

async fn message(
    io: &Io,
    held: &SessionGuard,
    author: Author,
    text: &str,
    id: &str,
    origin: Origin,
) -> Result<Item> {
    let body: Rc<str> = {
        let context = held.context();
        let like = context.items().last().map(|item| wire::parse(0, &item.body)).transpose()?;
        Rc::from(held.format().wire().text_message(author, text, id, like.as_ref()))
    };
    let size = measure(io, &held.settings(), held.format(), MessageSource::Ours, &body).await?;
    Ok(Item { body, size, origin })
}

/// Tokens of messages.
pub(super) fn tokens_of(items: &[Item]) -> usize {
    items.iter().map(|item| item.size.tokens).sum()
}
