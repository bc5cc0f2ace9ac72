//! What takes the place of summarised messages: the message of the summary, which stands in the conversation and never in
//! the system prompt, whose cached prefix stays valid (`S3.5`), and what must stand around it.

use super::cut::Proposal;
use super::laid_down::{more, rules};
use super::offload;
use super::redaction::without_secrets;
use super::replace::ends;
use crate::clock::iso8601;
use crate::context::{
    CoveredRange, Item, MessageSource, Offload, Origin, PinProposal, Place, Placeholder, Size, SummaryMeta,
};
use crate::error::{Code, Error, Result};
use crate::keys::ids;
use crate::log::{LogReader, References, State, View, carried, measure};
use crate::message::{Message, Part, Role};
use crate::policy::PinProposals;
use crate::redact::Erasure;
use crate::step::{Effect, Io, LogLevel, Notice};
use crate::summary;
use crate::wire::{self, Author, ERASED, Format, Repaired};
use std::collections::HashSet;
use std::rc::Rc;

/// Makes the messages of summaries for a context as it is.
pub(crate) struct Framer<'io> {
    io: &'io Io,
    pub(super) view: View,
    log: LogReader,
}

impl<'io> Framer<'io> {
    /// For the context of a session.
    pub(crate) fn of(io: &'io Io, state: &State) -> Self {
        Framer { io, view: state.view(), log: LogReader::of(state) }
    }

    /// What takes the place of the messages: those of them that stay, the message that holds the summary, and what must
    /// stand around them. What is new must be smaller than what it replaces, by the counter that decides (`S5.16`).
    /// `started` is when the summary was begun.
    pub(super) async fn candidate(
        &self,
        proposal: &Proposal,
        text: &str,
        files: &str,
        started: u64,
    ) -> Result<Vec<Item>> {
        let View { settings, references, .. } = &self.view;
        let generation = self.view.generation.to_le_bytes();
        let id = ids::id(&[b"checkpoint", references.secret.as_bytes(), &generation, text.as_bytes()]);
        let checkpoint: Rc<str> = Rc::from(format!("cp_{id}"));
        let proposed = carried(&proposal.unanswered, settings, proposal.replaced_tokens);
        let made = SummaryMeta {
            level: proposal.level,
            number: self.view.compressions,
            created_at: started,
            original_tokens: proposal.replaced_tokens,
            counted_tokens: proposal.counted_tokens,
            model: settings.summariser_model().map(str::to_string),
            more: more(proposal, &proposed),
            proposed,
            rules: rules(proposal.compress.iter()),
            waiting: proposal.waiting(self.view.context.since(proposal.boundary)),
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
        let mut written = vec![self.item(frame).await?];
        if proposal.acknowledge {
            written.push(self.acknowledgement(&format!("{checkpoint}_ack")).await?);
        }
        let keeps = |place: &Place, of_system: bool| {
            (!of_system && place.index >= proposal.quotes_from)
                || proposal.in_force.contains(&place.index)
                || self.view.is_pinned(place.index)
        };
        let mut stay = Vec::with_capacity(proposal.stay.len() + 1);
        for item in &proposal.stay {
            stay.push(self.requoted(item, keeps).await?);
        }
        let stayed = tokens_of(&stay);
        // An earlier checkpoint, which is the user's message too, may stand right before.
        let is_ours =
            |item: &Item| matches!(item.origin, Origin::Summary { .. }) && item.origin.server().is_none();
        if stay.last().is_some_and(is_ours) {
            stay.push(self.acknowledgement(&format!("{checkpoint}_before")).await?);
        }
        let mut items = [stay, written].concat();
        if let Some(body) = opening(self.view.format, proposal, &items)? {
            let size = self.measure(&body).await?;
            items.insert(0, Item::new(body, size, Origin::Acknowledgement));
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

    /// The message.
    pub(super) async fn item(&self, frame: Frame<'_>) -> Result<Item> {
        let time = iso8601(frame.made.created_at);
        let messages = match frame.covers.iter().map(|cover| cover.to - cover.from).sum() {
            1 => "an earlier message".to_string(),
            count => format!("{count} earlier messages"),
        };
        let recall = if self.view.references.by_model { RECALL } else { "" };
        let places = [
            ("id", frame.checkpoint.as_ref()),
            ("time", time.as_str()),
            ("messages", messages.as_str()),
            ("recall", recall),
        ];
        let header = summary::fill(self.view.settings.preset.summary_marker, &places);
        let mut text = format!("{header}{}", frame.text);
        let Quoted { text: quoted, missing } = self.quoted(&frame.quotes).await?;
        let mut quotes = frame.quotes;
        for (place, error) in missing {
            let reference = ids::message_reference(&self.view.references.secret, place.index);
            tell(self.io, format!("message {} cannot be quoted behind the summary: {error}", place.index));
            text += &format!("\n\n[Content unavailable: {reference}]");
            quotes.retain(|quote| *quote != place);
        }
        let prose = text.len();
        let beside = format!("{}{}", frame.text, frame.files);
        text += &self.front(&frame.made, &quotes, &quoted, &beside);
        let front = text.len() - prose;
        text += &quoted;
        text += frame.files;
        let mut item = self.message(frame.author, &text, &frame.checkpoint).await?;
        // Where the notice is all that follows its text, both are counted at once.
        let own = text.get(..prose).filter(|own| own.len() + summary::NOTICE.len() < text.len());
        let alone = match own {
            Some(own) => self.message(frame.author, own, &frame.checkpoint).await?,
            None => item.clone(),
        };
        let (tokens, text_tokens) = (item.size.tokens, alone.size.tokens);
        let made = SummaryMeta { tokens, text_tokens, header: header.len(), front, ..frame.made };
        item.origin = Origin::Summary {
            checkpoint: frame.checkpoint,
            covers: frame.covers.into(),
            quotes,
            prose,
            made: Some(Rc::new(made)),
        };
        Ok(item)
    }

    /// An earlier checkpoint that quotes only what `keeps` says: the user's newest messages move on (`S5.6`). What was rejected
    /// leaves it.
    async fn requoted(&self, item: &Item, keeps: impl Fn(&Place, bool) -> bool) -> Result<Item> {
        let quotes = item.origin.quotes();
        let of_system = match quotes {
            [] => HashSet::new(),
            _ => indices_of_system(&behind(self.view.format, item)?),
        };
        let is_kept = |place: &Place| keeps(place, of_system.contains(&place.index));
        let kept: Vec<Place> = quotes.iter().copied().filter(is_kept).collect();
        let is_rejected = match &item.origin {
            Origin::Summary { made: Some(made), .. } => {
                made.proposed.iter().any(|open| self.view.is_rejected(open.index))
            }
            _ => false,
        };
        if kept.len() == quotes.len() && !is_rejected {
            Ok(item.clone())
        } else {
            self.with_quotes(item, kept).await
        }
    }

    /// A summary that quotes one more of the messages that it stands for.
    pub(crate) async fn quoting(&self, item: &Item, place: Place) -> Result<Item> {
        let mut all = item.origin.quotes().to_vec();
        all.insert(all.partition_point(|other| other.index < place.index), place);
        self.with_quotes(item, all).await
    }

    /// The message of a summary with other quotes.
    async fn with_quotes(&self, item: &Item, kept: Vec<Place>) -> Result<Item> {
        let Origin::Summary { checkpoint, covers, quotes, prose, made } = &item.origin else {
            return Ok(item.clone());
        };
        let text = text_in(self.view.format, item)?;
        let (head, tail) = text.split_at_checked(*prose).unwrap_or((&text, ""));
        let before = self.quoted(quotes).await?.text;
        let of_before = made.as_deref().cloned().unwrap_or_default();
        // An earlier release had other words before the quotes.
        let files = match tail.split_once(before.as_str()) {
            Some((_, files)) if !before.is_empty() => files,
            _ => tail.get(of_before.front..).unwrap_or(tail),
        };
        let mut now = self.quoted(&kept).await?;
        if let Some((_, error)) = now.missing.pop() {
            return Err(error);
        }
        let mut of_now = of_before;
        of_now.proposed.retain(|open| !self.view.is_rejected(open.index));
        let front = self.front(&of_now, &kept, &now.text, &format!("{head}{files}"));
        let body = format!("{head}{front}{}{files}", now.text);
        let mut new = self.message(author_of(item), &body, checkpoint).await?;
        let made = Some(Rc::new(SummaryMeta { tokens: new.size.tokens, front: front.len(), ..of_now }));
        let (checkpoint, covers) = (Rc::clone(checkpoint), covers.clone());
        new.origin = Origin::Summary { checkpoint, covers, quotes: kept, prose: *prose, made };
        Ok(new)
    }

    /// What stands between a summary and the quotes, whose text is `quoted`: that it is a record, what the user laid down and
    /// neither the quotes nor `beside` say, and what came of what is quoted.
    fn front(&self, made: &SummaryMeta, quotes: &[Place], quoted: &str, beside: &str) -> String {
        let mut sentences: Vec<String> = Vec::new();
        if self.view.settings.pin_proposals == PinProposals::Keep {
            let is_quoted = |index: usize| quotes.iter().any(|place| place.index == index);
            let open = made.proposed.iter().filter(|open| !is_quoted(open.index));
            for sentence in made.rules.iter().chain(open.flat_map(|open| &open.constraints)) {
                let sentence = without_secrets(&self.view, sentence.clone());
                if !beside.contains(&sentence) && !sentences.contains(&sentence) {
                    sentences.push(sentence);
                }
            }
        }
        let mut rules = summary::rules(&sentences);
        if self.view.references.by_model && !made.more.is_empty() && !rules.is_empty() {
            let secret = &self.view.references.secret;
            let labels: Vec<String> =
                made.more.iter().map(|index| ids::message_reference(secret, *index)).collect();
            rules += &format!("\n- and more, for which there is no room here: read {}", labels.join(", "));
        }
        format!("{}{rules}{}", summary::NOTICE, heading(quotes, quoted, made))
    }

    /// The message that keeps the roles alternating.
    async fn acknowledgement(&self, id: &str) -> Result<Item> {
        let text = self.view.settings.preset.acknowledgement;
        self.message(Author::Assistant, text, id).await
    }

    /// From the log; what is damaged there, from the summary of the context that quotes it already.
    async fn quoted(&self, places: &[Place]) -> Result<Quoted> {
        let (mut quotes, mut missing) = (Vec::with_capacity(places.len()), Vec::new());
        for place in places {
            match self.log.body(self.io, *place).await {
                Ok(body) => {
                    let value = wire::parse(place.index, &body)?;
                    let mut message = self.view.format.wire().read(place.index, &value)?;
                    let of = self.offloads_of(place);
                    self.shorten(&of, &mut message);
                    quotes.push(summary::quote(place.index, &message, &self.stand_ins(place, &of)));
                }
                Err(error) if error.code == Code::StoreCorrupt => match self.standing(place)? {
                    Some(quote) => quotes.push(quote),
                    None => missing.push((*place, error)),
                },
                Err(error) => return Err(error),
            }
        }
        Ok(Quoted { text: summary::quotes(&quotes), missing })
    }

    /// Puts previews in the place of texts that are too large for the context.
    fn shorten(&self, of: &[Offload], message: &mut Message<'_>) {
        let texts = message.parts.iter_mut().filter_map(|part| match part {
            Part::Text(text) => Some(text),
            _ => None,
        });
        for (nth, text) in texts.enumerate() {
            if let Some(offload) =
                of.iter().find(|offload| offload.how == Placeholder::Text && offload.nth == nth)
            {
                *text = ends(&self.view, &offload.reference, text, SHORT).into();
            }
        }
    }

    /// The offloads of a message, wherever in the context it is.
    fn offloads_of(&self, place: &Place) -> Vec<Offload> {
        let mut found = Vec::new();
        for item in self.view.items() {
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
    fn stand_ins(&self, place: &Place, of: &[Offload]) -> Vec<(usize, String)> {
        if self.view.is_pinned(place.index) {
            return Vec::new();
        }
        let stands = |offload: &Offload| match self.view.references.named {
            true => offload::reference(&offload.reference),
            false => "[This result was too large, and is left out]".into(),
        };
        of.iter()
            .filter(|offload| offload.is_result())
            .map(|offload| (offload.nth, stands(offload)))
            .collect()
    }

    /// A message as a summary of the context quotes it.
    fn standing(&self, place: &Place) -> Result<Option<String>> {
        let Some(item) = self.view.items().iter().find(|item| item.origin.quotes().contains(place)) else {
            return Ok(None);
        };
        Ok(summary::find_quote(&behind(self.view.format, item)?, place.index))
    }

    async fn message(&self, author: Author, text: &str, id: &str) -> Result<Item> {
        let like = self.view.context.last().map(|item| wire::parse(0, &item.body)).transpose()?;
        let body = Rc::from(self.view.format.wire().text_message(author, text, id, like.as_ref()));
        let size = self.measure(&body).await?;
        Ok(Item::new(body, size, Origin::Acknowledgement))
    }

    async fn measure(&self, body: &Rc<str>) -> Result<Size> {
        measure(self.io, &self.view.settings, self.view.format, MessageSource::Ours, body).await
    }
}

/// The message that the format wants in front of `items` where they begin the conversation with one that stays, such
/// as the provider's own compaction.
fn opening(format: Format, proposal: &Proposal, items: &[Item]) -> Result<Option<Rc<str>>> {
    if proposal.head > 0 || proposal.stay.is_empty() {
        return Ok(None);
    }
    let values = items.iter().map(|item| wire::parse(0, &item.body)).collect::<Result<Vec<_>>>()?;
    let (repaired, _) = format.rules().repair(&values);
    Ok(match repaired.as_slice() {
        [
            Repaired::Replace { index: 0, json },
            Repaired::Keep(0) | Repaired::Replace { index: 0, .. },
            ..,
        ] => Some(Rc::from(json.as_str())),
        _ => None,
    })
}

/// How a model gets at what a page leaves out, where it has the tools.
const RECALL: &str = " Read one with recall_read, by its label such as m12k; search them with recall_search.";

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

/// The text of a summary in the message that holds it, without the quotes and the files; `bare` is without its mark.
pub(super) fn text_of(format: Format, item: &Item, bare: bool) -> Result<String> {
    let text = text_in(format, item)?;
    let Origin::Summary { prose, made, .. } = &item.origin else { return Ok(text) };
    let header = made.as_ref().filter(|_| bare).map_or(0, |made| made.header);
    let end = if *prose > 0 { *prose } else { text.len() };
    Ok(text.get(header..end).unwrap_or(&text).to_string())
}

/// All text of a message.
pub(super) fn text_in(format: Format, item: &Item) -> Result<String> {
    Ok(format.wire().read(0, &wire::parse(0, &item.body)?)?.text())
}

/// A summary without what `erasure` takes out: sentences with something that only the message says, and its quote.
pub(crate) fn erased(
    format: Format,
    origin: Origin,
    body: Rc<str>,
    erasure: &Erasure,
) -> Result<(Origin, Rc<str>)> {
    let by_server = origin.server();
    let Origin::Summary { checkpoint, covers, quotes, prose, made } = origin else {
        return Ok((origin, body));
    };
    let wire = format.wire();
    let like = wire::parse(0, &body)?;
    // Nobody can say what the provider made of the message.
    if let Some(place) = by_server {
        let concerns = |cover: &CoveredRange| (cover.from..cover.to).contains(&erasure.index);
        if place.index != erasure.index && !covers.iter().any(concerns) {
            return Ok((Origin::Summary { checkpoint, covers, quotes, prose, made }, body));
        }
        let body = wire.text_message(Author::Assistant, ERASED, &checkpoint, Some(&like));
        let origin = Origin::Summary { checkpoint, covers, quotes: Vec::new(), prose: 0, made: None };
        return Ok((origin, Rc::from(body)));
    }
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
    now.more.retain(|index| *index != erasure.index);
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

/// Indices of the messages of the system among quotes.
fn indices_of_system(quotes: &str) -> HashSet<usize> {
    summary::quotes_of_system(quotes).into_iter().map(|quote| quote.index).collect()
}

/// What stands behind the text of a summary.
fn behind(format: Format, item: &Item) -> Result<String> {
    let text = text_in(format, item)?;
    let Origin::Summary { prose, .. } = &item.origin else { return Ok(String::new()) };
    Ok(text.get(*prose..).unwrap_or("").to_string())
}

/// What stands before the quotes.
fn heading(quotes: &[Place], quoted: &str, made: &SummaryMeta) -> String {
    let is_quoted = |index: &&usize| quotes.iter().any(|place| place.index == **index);
    let waiting: Vec<usize> = made.waiting.iter().filter(is_quoted).copied().collect();
    summary::quotes_heading(quotes.len(), indices_of_system(quoted).len(), &waiting)
}

/// True for references of what `covers` holds, and for those of messages that this session has.
pub(super) fn knows(references: &References, covers: &[CoveredRange], reference: &str) -> bool {
    let mut offloads = covers.iter().flat_map(|cover| &cover.offloads);
    offloads.any(|(_, offload)| offload.reference == reference)
        || ids::message_index(&references.secret, reference).is_some()
}

/// Whose message a summary is.
pub(super) fn author_of(item: &Item) -> Author {
    if item.size.role == Role::Assistant { Author::Assistant } else { Author::User }
}

/// Messages word for word, as the app handed them over.
struct Quoted {
    text: String,
    /// Those that can be read nowhere any more.
    missing: Vec<(Place, Error)>,
}

/// Tokens of a text in a quote that was too large for the context.
const SHORT: usize = 100;

fn tell(io: &Io, message: String) {
    io.log(LogLevel::Warn, message.clone());
    io.tell(Effect::Notify(Notice::Warning { code: Code::StoreCorrupt, message }));
}

/// Tokens of messages.
pub(super) fn tokens_of(items: &[Item]) -> usize {
    items.iter().map(|item| item.size.tokens).sum()
}
