//! Old checkpoints made shorter, and several of them made one (`S5.8`), so that a conversation with many of them stays
//! bounded (`S5.17`). Each goes through the summariser once in a compaction; what fails stays as it was, and the next
//! compaction tries again.

use super::ask::{Judged, SummaryJob};
use super::call::CallCost;
use super::floor::Least;
use super::frame::{Frame, Framer, knows, text_of};
use super::laid_down::rules;
use super::redaction::{redact, without_secrets};
use super::result::Edit;
use super::rung::{Climbed, Run, RungSpec, RungWork};
use super::{emergency, reasoning};
use crate::checkpoint::Level;
use crate::context::{CoveredRange, Item, Origin, Place, Splice, SummaryMeta};
use crate::error::{Code, Result};
use crate::keys::ids;
use crate::log::{Cause, ContextChange, Job, View};
use crate::message::{Message, Part, Role};
use crate::policy::{Rung, Settings};
use crate::step::{Effect, LogLevel, Notice, Purpose};
use crate::summary::{self, PROMPT_VERSION, SummaryRequest};
use crate::wire::Author;
use std::ops::Range;
use std::rc::Rc;

/// The level that a checkpoint has come of age for; nothing while it is young.
fn due(view: &View, made: &SummaryMeta) -> Option<Level> {
    let numbers = view.settings.numbers.checkpoint;
    match view.compressions.saturating_sub(made.number) {
        age if age >= numbers.age_compact => Some(Level::Compact),
        age if age >= numbers.age_moderate => Some(Level::Moderate),
        _ => None,
    }
}

/// How a checkpoint was made; one of an earlier release counts as the first.
fn made_of(item: &Item) -> Option<SummaryMeta> {
    match &item.origin {
        Origin::Summary { made, .. } if item.origin.server().is_none() => {
            Some(made.as_deref().cloned().unwrap_or_default())
        }
        _ => None,
    }
}

/// Where the checkpoints stand that are due for a lower level, and for which.
fn aged(view: &View) -> Vec<(usize, Level)> {
    let items = view.items().iter().enumerate();
    let due = items.filter_map(|(at, item)| {
        let made = made_of(item)?;
        let level = due(view, &made)?;
        made.level.is_none_or(|now| now > level).then_some((at, level))
    });
    due.collect()
}

/// The first run of checkpoints that are to become one: old ones of level 1, with nothing of the app between them.
fn run_of(view: &View) -> Option<Range<usize>> {
    let items = view.items();
    let is_small = |item: &Item| {
        made_of(item).is_some_and(|made| {
            made.level == Some(Level::Compact) && due(view, &made) == Some(Level::Compact)
        })
    };
    let start = items.iter().position(is_small)?;
    let (mut end, mut count) = (start, 0);
    for (at, item) in items.iter().enumerate().skip(start) {
        if is_small(item) {
            (end, count) = (at + 1, count + 1);
        } else if item.origin != Origin::Acknowledgement {
            break;
        }
    }
    (count >= view.settings.numbers.checkpoint.merge_count).then_some(start..end)
}

fn covers(item: &Item) -> &[CoveredRange] {
    match &item.origin {
        Origin::Summary { covers, .. } => covers,
        _ => &[],
    }
}

/// The app's messages that a checkpoint stands for.
pub(super) fn indices(item: &Item) -> impl Iterator<Item = usize> {
    covers(item).iter().flat_map(|cover| cover.from..cover.to)
}

/// Behind a summary, or where the prompt does not fit.
pub(super) const RUNG: RungSpec = RungSpec {
    rung: Rung::Age,
    fires,
    work: RungWork::Steps {
        waits: None,
        apply: |run, done| Box::pin(apply(run, done, async |spent| age(run, spent).await)),
        least: ages,
    },
    idle: |_| None,
};

/// True when old checkpoints are looked at.
pub(super) fn fires(view: &View, _: &Run<'_>, done: &Climbed) -> bool {
    done.result.as_ref().is_some_and(|result| result.summary.is_some()) || !view.fits()
}

/// Earlier summaries become shorter.
pub(super) fn ages(_: &View, least: &mut Least) -> Result<()> {
    least.ages = true;
    Ok(())
}

/// Makes checkpoints shorter, as `edits` does.
pub(super) async fn apply(
    run: &Run<'_>,
    done: &mut Climbed,
    edits: impl AsyncFnOnce(&mut CallCost) -> Result<Vec<Edit>>,
) -> Result<bool> {
    emergency::secure(run).await?;
    let mut spent = CallCost::default();
    let edits = edits(&mut spent).await?;
    done.add(&run.view(), edits, spent)?;
    Ok(true)
}

/// Makes old checkpoints shorter, one after the other.
async fn age(run: &Run<'_>, spent: &mut CallCost) -> Result<Vec<Edit>> {
    let mut edits = Vec::new();
    for (at, level) in aged(&run.view()) {
        // Each change takes the place of one item by one: the others stay where they are.
        match shorten(run, at..at + 1, level, spent).await? {
            Some(edit) => edits.extend(edit),
            None => break,
        }
    }
    Ok(edits)
}

/// Makes several old checkpoints one.
pub(super) async fn merge(run: &Run<'_>, spent: &mut CallCost) -> Result<Option<Edit>> {
    let Some(range) = run_of(&run.view()) else { return Ok(None) };
    Ok(shorten(run, range, Level::Compact, spent).await?.flatten())
}

/// One checkpoint of a level in the place of those in `range`; none when the summariser fails. Nothing when the context
/// was changed elsewhere meanwhile: the summary stands, and ageing waits for the next.
pub(super) async fn shorten(
    run: &Run<'_>,
    range: Range<usize>,
    level: Level,
    spent: &mut CallCost,
) -> Result<Option<Option<Edit>>> {
    match try_shorten(run, range, level, spent).await {
        Err(error) if error.code == Code::Conflict => {
            run.io.log(LogLevel::Info, format!("Old checkpoints stay as they are for now: {error}"));
            Ok(None)
        }
        done => done.map(Some),
    }
}

async fn try_shorten(
    run: &Run<'_>,
    range: Range<usize>,
    level: Level,
    spent: &mut CallCost,
) -> Result<Option<Edit>> {
    let items: Vec<Item> = run.view().items().get(range.clone()).unwrap_or_default().to_vec();
    let count = items.iter().filter(|item| made_of(item).is_some()).count();
    let rung = if count > 1 { Rung::Merge } else { Rung::Age };
    let Some(item) = run.writer.checkpoint(run, &items, (rung, level), spent).await? else {
        return Ok(None);
    };
    let before = items.iter().map(|item| item.size.tokens).sum::<usize>();
    let now = item.size.tokens;
    let is_shorter = now < before;
    let (insert, freed) = match items.as_slice() {
        _ if is_shorter => (item, before - now),
        // Already as short as this level makes it: the text stays, and is not asked for again.
        [old] => (relevelled(old, level), 0),
        _ => return Ok(None),
    };
    let splice = Splice { at: range.start, remove: range.len(), insert: vec![insert] };
    let view = run.view();
    let (splices, of_reasoning) =
        if is_shorter { reasoning::unbind(run.io, &view, vec![splice]).await? } else { (vec![splice], 0) };
    let freed = freed + of_reasoning;
    let cause = Cause {
        // Where the old text stays nobody has written anything.
        prompt_version: is_shorter.then_some(PROMPT_VERSION),
        model: view.settings.summariser_model().filter(|_| is_shorter).map(str::to_string),
        ..run.cause(rung.stored(), view.usage.after(0, freed))
    };
    run.change(ContextChange::compaction(splices, cause)).await?;
    if !is_shorter {
        return Ok(None);
    }
    let detail = Some(format!("{count} to level {}", u8::from(level)));
    let edit = Edit::named(rung.as_str(), items.iter().flat_map(indices).collect(), freed);
    Ok(Some(run.writer.told(rung, Edit { detail, ..edit })))
}

/// The message of a shorter checkpoint in the place of those; nothing when the summariser fails.
pub(super) async fn written(
    run: &Run<'_>,
    items: &[Item],
    level: Level,
    spent: &mut CallCost,
) -> Result<Option<Item>> {
    let (io, view) = (run.io, run.view());
    let mut texts = Vec::new();
    for item in items.iter().filter(|item| made_of(item).is_some()) {
        texts.push(redact(io, &view, text_of(view.format, item, true)?).await?);
    }
    drop(view);
    let text = match ask(run, &texts, level, spent).await {
        Ok(text) => text,
        Err(error) if matches!(error.code, Code::Aborted | Code::Closed | Code::Conflict) => {
            return Err(error);
        }
        Err(error) => {
            let message = format!("A checkpoint could not be made shorter and stays as it was: {error}");
            io.log(LogLevel::Warn, message.clone());
            io.tell(Effect::Notify(Notice::Warning { code: error.code, message }));
            return Ok(None);
        }
    };
    let framer = run.framer();
    let covers: Vec<CoveredRange> = items.iter().flat_map(covers).cloned().collect();
    let text = without_secrets(&framer.view, text);
    let text = summary::guarded(&text, &|reference| knows(&framer.view.references, &covers, reference));
    let now = io.now().await?;
    joined(&framer, items, &text, level, now).await.map(Some)
}

/// The same where nobody writes: what is quoted, and a text of `target` tokens, or as short as it is. Also the tokens of the
/// texts as they are.
pub(super) fn shorter_item(items: &[Item], level: Level, target: usize) -> (Option<Item>, usize) {
    let own = |item: &Item| match made_of(item) {
        Some(made) if made.text_tokens > 0 => made.text_tokens,
        _ => item.size.tokens,
    };
    let own: usize = items.iter().filter(|item| made_of(item).is_some()).map(own).sum();
    let tokens = items.iter().map(|item| item.size.tokens).sum::<usize>() - own.saturating_sub(target);
    let all: Rc<[CoveredRange]> = items.iter().flat_map(covers).cloned().collect();
    let quoted: Vec<Place> = items.iter().flat_map(|item| item.origin.quotes()).copied().collect();
    let mut newest = items.iter().rfind(|item| made_of(item).is_some()).map(|item| relevelled(item, level));
    if let Some(item) = &mut newest {
        item.size.tokens = tokens;
        if let Origin::Summary { covers, quotes, made, .. } = &mut item.origin {
            (*covers, *quotes) = (all, quoted);
            let old = made.as_deref().cloned().unwrap_or_default();
            *made = Some(Rc::new(SummaryMeta { text_tokens: own.min(target), ..old }));
        }
    }
    (newest, own)
}

fn relevelled(item: &Item, level: Level) -> Item {
    let mut item = item.clone();
    if let Origin::Summary { made, .. } = &mut item.origin {
        let old = made.as_deref().cloned().unwrap_or_default();
        *made = Some(Rc::new(SummaryMeta { level: Some(level), ..old }));
    }
    item
}

/// The message of a checkpoint that stands for what those did. One alone keeps its id.
async fn joined(framer: &Framer<'_>, items: &[Item], text: &str, level: Level, now: u64) -> Result<Item> {
    let mut id: Option<Rc<str>> = None;
    let mut quotes: Vec<Place> = Vec::new();
    let mut all: Vec<CoveredRange> = Vec::new();
    let mut made = SummaryMeta::default();
    for item in items {
        let Origin::Summary { checkpoint, quotes: own, .. } = &item.origin else { continue };
        quotes.extend(own);
        all.extend_from_slice(covers(item));
        let this = made_of(item).unwrap_or_default();
        // It is as old as the newest of them.
        let proposed = [made.proposed, this.proposed.clone()].concat();
        let original_tokens = made.original_tokens + this.original_tokens;
        let counted_tokens = made.counted_tokens + this.counted_tokens;
        let waiting = [made.waiting, this.waiting.clone()].concat();
        made = SummaryMeta { original_tokens, counted_tokens, proposed, waiting, rules: Vec::new(), ..this };
        id = Some(match id {
            None => Rc::clone(checkpoint),
            Some(_) => {
                let secret = framer.view.references.secret.as_bytes();
                let parts = [&b"checkpoint"[..], secret, checkpoint.as_bytes(), text.as_bytes()];
                Rc::from(format!("cp_{}", ids::id(&parts)))
            }
        });
    }
    made.proposed.retain(|open| !framer.view.is_rejected(open.index));
    let made =
        SummaryMeta { level: Some(level), compressed_at: Some(now), rules: rules(items.iter()), ..made };
    let checkpoint = id.unwrap_or_default();
    let author = Author::User;
    framer.item(Frame { checkpoint, author, text, covers: all, quotes, files: "", made }).await
}

/// Asks for a shorter text, once. Where no model is given the built-in summariser writes it.
async fn ask(run: &Run<'_>, texts: &[String], level: Level, spent: &mut CallCost) -> Result<String> {
    let settings = run.settings();
    let range = settings.numbers.checkpoint.levels.target(level, settings.window);
    if !settings.asks_a_model() {
        let part = |text: &String| Message { role: Role::User, parts: vec![Part::Text(text.clone().into())] };
        let messages: Vec<Message<'_>> = texts.iter().map(part).collect();
        return Ok(summary::extractive(&messages, range.high, settings.estimator));
    }
    let request = Rc::new(summary::again(texts, level, range, settings.summary_model.clone()));
    let purpose = if texts.len() > 1 { Purpose::Checkpoints } else { Purpose::Age };
    let mut job = ShorterCheckpoint { run, request, purpose };
    super::ask::ask(run, &Job::default(), &mut job, spent).await
}

/// Asking for a shorter checkpoint.
struct ShorterCheckpoint<'a> {
    run: &'a Run<'a>,
    request: Rc<SummaryRequest>,
    purpose: Purpose,
}

impl SummaryJob for ShorterCheckpoint<'_> {
    type Written = String;
    const REFUSED: &'static str = "";

    fn purpose(&self) -> Purpose {
        self.purpose
    }

    // The next compaction tries again.
    fn attempts(&self, _: &Settings) -> u32 {
        1
    }

    async fn question(&mut self) -> Result<Rc<SummaryRequest>> {
        Ok(Rc::clone(&self.request))
    }

    async fn request(&mut self, _: u32, _: Option<&str>) -> Result<Rc<SummaryRequest>> {
        self.question().await
    }

    async fn accept(&mut self, answer: &str) -> Result<Judged<String>> {
        // Sentences of the old text may stand in the new one: whether it is shorter is what counts.
        let alone = SummaryRequest { messages: Vec::new(), ..SummaryRequest::clone(&self.request) };
        let checked = summary::check(answer, &alone, usize::MAX, self.run.settings().estimator);
        Ok(checked.map_or_else(|rejection| Judged::Bad(rejection.reason), Judged::Good))
    }

    fn release(&mut self) {
        self.run.release();
    }

    fn acquire(&mut self) -> Result<()> {
        self.run.acquire()
    }
}
