//! What a state looks like as JSON.

use super::corrupt;
use crate::checkpoint::Goal;
use crate::compaction;
use crate::context::{Placeholder, SummaryMeta};
use crate::error::{Code, Error, Result};
use crate::log::price::Paid;
use crate::redact::Secrets;
use crate::wire::Format;
use crate::wire::record::{self, Json, ReadJson, Unreadable, WriteJson, write_variant};

/// Version of every state that this release writes. It reads those of the same hundred.
const VERSION: u32 = 100;
/// Bytes of a state that is read at all.
const MOST_BYTES: usize = 4 << 20;
/// No number of a state is larger, but for times and money.
const MOST: u64 = 1_000_000_000;
/// ms since 1970: the year 33,658.
const LAST_TIME: u64 = 1_000_000_000_000_000;

/// A state.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Portable {
    /// [`VERSION`].
    pub v: u32,
    /// The messages' format.
    pub format: Format,
    /// Makes references unguessable, and the same from call to call.
    pub secret: String,
    /// Beginnings of the history that the view can be cut at, longest first.
    pub boundaries: Vec<Boundary>,
    /// The context, as far as the first boundary.
    pub view: Vec<ViewPiece>,
    /// What stands for a text of the app's messages says that it is left out, and not where it is: the model cannot read it.
    pub unnamed: bool,
    /// What was taken out of the app's messages in it.
    pub edits: Vec<Cutout>,
    /// Messages that are edited in other ways too.
    pub edited: Vec<EditedPiece>,
    /// Changes of the context so far.
    pub generation: u64,
    /// Summaries so far.
    pub compressions: u64,
    /// Calls so far, about.
    pub steps: u64,
    /// The call of the last attempt to summarise.
    pub attempted_at: Option<u64>,
    /// Attempts that failed since.
    pub failures: u32,
    /// What calls paid for a larger context, where the prices decide.
    pub paid: Paid,
    /// What the conversation is for.
    pub goal: Option<Goal>,
    /// Which secrets have which number in what stands for messages.
    pub secrets: Secrets,
}

crate::wire::record!(Portable {
    v = "v",
    format = "format",
    secret = "secret",
    boundaries = "boundaries",
    view = "view",
    unnamed = "unnamed" or nothing,
    edits = "edits" or nothing,
    edited = "edited" or nothing,
    generation = "generation" or nothing,
    compressions = "compressions" or nothing,
    steps = "steps" or nothing,
    attempted_at = "attemptedAt" or nothing,
    failures = "failures" or nothing,
    paid = "paid" or nothing,
    goal = "goal" or nothing,
    secrets = "secrets" or nothing,
});

/// A beginning of the history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Boundary {
    /// Its messages.
    pub n: usize,
    /// Its hash, in hex.
    pub hash: String,
}

crate::wire::record!(Boundary {
    n = "n",
    hash = "hash",
});

/// A part of the context.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ViewPiece {
    /// The app's messages from one index to before another.
    Messages(usize, usize),
    /// A summary.
    Summary(Box<SummaryPiece>),
    /// A message of ours that keeps the roles alternating: its JSON text, so that no store changes a letter of it.
    Acknowledgement(String),
}

impl WriteJson for ViewPiece {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            ViewPiece::Messages(from, to) => {
                write_variant(out, "messages", &mut |out| (*from, *to).write(out))
            }
            ViewPiece::Summary(piece) => write_variant(out, "summary", &mut |out| piece.write(out)),
            ViewPiece::Acknowledgement(body) => {
                write_variant(out, "acknowledgement", &mut |out| body.write(out))
            }
        }
    }
}

impl ReadJson<'_> for ViewPiece {
    fn read(json: &mut Json<'_>) -> std::result::Result<Self, Unreadable> {
        json.variant(|name, json| match name {
            "messages" => <(usize, usize)>::read(json).map(|(from, to)| ViewPiece::Messages(from, to)),
            "summary" => ReadJson::read(json).map(ViewPiece::Summary),
            "acknowledgement" => ReadJson::read(json).map(ViewPiece::Acknowledgement),
            _ => Err(Unreadable::no("part of a context")),
        })
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EditedPiece {
    pub index: usize,
    /// The reasoning that was bound to what stood before it is gone.
    pub reasoning_removed: bool,
    /// The whole message, where these do not make it of the app's.
    pub body: Option<String>,
}

crate::wire::record!(EditedPiece {
    index = "index",
    reasoning_removed = "reasoningRemoved" or nothing,
    body = "body" or nothing,
});

/// A text of a message that stands there no more. Its reference follows from the secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cutout {
    /// Of which message, where that is not said around it.
    pub index: Option<usize>,
    /// Which text of its kind in the message, from 0.
    pub part: usize,
    /// What stands for it; when it is not said a preview where more than its reference stands there, else that.
    pub how: Option<Placeholder>,
    /// The first 16 hex digits of the SHA-256 of the text.
    pub sha256: String,
    /// What stands there behind its reference, or behind what says that it is left out.
    pub more: Option<String>,
    /// What stands there, where that begins otherwise.
    pub text: Option<String>,
}

crate::wire::record!(Cutout {
    index = "index" or nothing,
    part = "part" or nothing,
    how = "how" or nothing,
    sha256 = "sha256",
    more = "more" or nothing,
    text = "text" or nothing,
});

impl Cutout {
    /// What stands for it.
    pub(super) fn how(&self) -> Placeholder {
        let usual = if self.more.is_some() { Placeholder::Preview } else { Placeholder::Reference };
        self.how.unwrap_or(usual)
    }

    /// Takes what stands there over, given how that begins.
    pub(super) fn put(&mut self, how: Placeholder, stands: String, bare: &str) {
        (self.more, self.text) = match stands.strip_prefix(bare) {
            Some("") => (None, None),
            Some(more) => (Some(more.to_owned()), None),
            None => (None, Some(stands)),
        };
        self.how = None;
        self.how = (self.how() != how).then_some(how);
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SummaryPiece {
    pub checkpoint: String,
    /// Its message, JSON text.
    pub body: String,
    /// The messages that it stands for: from an index to before another.
    pub covers: Vec<(usize, usize)>,
    /// What had been taken out of those.
    pub retired: Vec<Cutout>,
    /// Those of them that are verbatim in it.
    pub quotes: Vec<usize>,
    /// Bytes of its text before those.
    pub prose: usize,
    /// How it was made.
    pub made: Option<SummaryMeta>,
}

crate::wire::record!(SummaryPiece {
    checkpoint = "checkpoint",
    body = "body",
    covers = "covers",
    retired = "retired" or nothing,
    quotes = "quotes" or nothing,
    prose = "prose" or nothing,
    made = "made" or nothing,
});

impl Portable {
    /// A state of nothing yet.
    pub(crate) fn new(format: Format, secret: String) -> Self {
        Portable {
            v: VERSION,
            format,
            secret,
            boundaries: Vec::new(),
            view: Vec::new(),
            unnamed: false,
            edits: Vec::new(),
            edited: Vec::new(),
            generation: 0,
            compressions: 0,
            steps: 0,
            attempted_at: None,
            failures: 0,
            paid: Paid::default(),
            goal: None,
            secrets: Secrets::default(),
        }
    }

    /// How what stands for a text begins as a rule.
    pub(super) fn beginning(&self, reference: &str) -> String {
        if self.unnamed { compaction::LEFT_OUT.into() } else { compaction::stub_of(reference) }
    }

    /// A state from its JSON text.
    ///
    /// Errors: [`Code::StoreCorrupt`] when it is none, [`Code::SchemaTooNew`].
    pub(crate) fn parse(text: &str) -> Result<Self> {
        struct Versioned {
            v: u32,
        }
        crate::wire::record!(Versioned { v = "v" });
        if text.len() > MOST_BYTES {
            return Err(corrupt(format!(
                "{} bytes are no state: it was not written by this library",
                text.len()
            )));
        }
        let unreadable = |error: Unreadable| {
            corrupt(format!(
                "it cannot be read: {error}; pass what the call before returned, or null to begin anew"
            ))
        };
        let Versioned { v } = record::from_str(text).map_err(unreadable)?;
        if v / 100 > VERSION / 100 {
            let what = format!(
                "the state was written by version {v}, this release reads up to 199: update the library"
            );
            return Err(Error::new(Code::SchemaTooNew, what).of_field(Some("state".into())));
        }
        if v < VERSION {
            return Err(corrupt(format!("there is no version {v} of it; pass null to begin anew")));
        }
        let state: Portable = record::from_str(text).map_err(unreadable)?;
        if state.is_plausible() { Ok(state) } else { Err(corrupt("a number or a text in it cannot be")) }
    }

    /// False for numbers that no state has: sums over them must not overflow.
    fn is_plausible(&self) -> bool {
        let counts = [self.generation, self.compressions, self.steps, self.attempted_at.unwrap_or(0)];
        let is_of_meter = self.paid.is_plausible(MOST, LAST_TIME);
        let is_short = |text: &str| !text.is_empty() && text.len() <= 200;
        let is_summary = |piece: &ViewPiece| match piece {
            ViewPiece::Summary(piece) => {
                is_short(&piece.checkpoint) && piece.made.as_ref().is_none_or(is_made)
            }
            _ => true,
        };
        counts.iter().all(|count| *count <= MOST)
            && u64::from(self.failures) <= MOST
            && is_of_meter
            && self.boundaries.iter().all(|boundary| boundary.n as u64 <= MOST)
            && is_short(&self.secret)
            && self.view.iter().all(is_summary)
    }

    /// Its JSON text.
    pub(crate) fn text(&self) -> String {
        record::to_text(self)
    }
}

fn is_made(made: &SummaryMeta) -> bool {
    let tokens = [made.original_tokens, made.counted_tokens, made.tokens, made.text_tokens];
    let indices =
        made.more.iter().chain(&made.waiting).chain(made.proposed.iter().map(|proposal| &proposal.index));
    let times = [made.created_at, made.compressed_at.unwrap_or(0)];
    let is_small = |count: &usize| *count as u64 <= MOST;
    let proposed = made.proposed.iter().map(|proposal| &proposal.tokens);
    tokens.iter().chain(indices).chain(proposed).all(is_small)
        && made.number <= MOST
        && times.iter().all(|time| *time <= LAST_TIME)
}
