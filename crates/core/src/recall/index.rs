//! Reading the terms of the whole log: the pages that there are, and pages made of the log where there are none, which are
//! then written for the next search.

use super::archive::Archive;
use crate::error::Result;
use crate::keys::batch::{Batch, Durability, Key, keys};
use crate::log::offloads::PART;
use crate::log::record::RowKind;
use crate::log::stored::PAGE;
use crate::log::terms::{Draft, FULL};
use crate::log::{Page, Walk, wide};
use crate::step::{Io, Scan};

/// Is shown a page, and from which message on it is new.
type See<'s> = dyn FnMut(&Page<'_>, usize) + 's;

/// Shows all messages of the archive in pages, in order. Pages may have later messages too.
pub(super) async fn pages(io: &Io, archive: &Archive, see: &mut See<'_>) -> Result<()> {
    // Of another session nothing is written.
    let writes = archive.tag.is_none();
    let mut reader = PageReader { io, archive, next: (0, 0), new: Vec::new(), bytes: 0, writes };
    let mut after = None;
    loop {
        let prefix = keys::all_terms(&archive.sid);
        let scan = Scan { prefix, after, limit: 1_000, max_bytes: PAGE, reverse: false, keys_only: false };
        let rows = wide::scan(io, scan).await?;
        let Some((last, _)) = rows.last() else { break };
        after = Some(last.clone());
        for (key, bytes) in rows {
            let page = Page::read(&bytes, archive.format);
            match page.filter(|page| key == keys::terms(&archive.sid, page.first)) {
                Some(page) if page.end() <= reader.next.0 || page.first >= archive.messages => {}
                Some(page) => {
                    reader.fill(Some(&page), see).await?;
                    see(&page, reader.next.0);
                    reader.next = (page.end(), page.seqs.1 + 1);
                }
                None => reader.change(key, None).await,
            }
        }
    }
    reader.fill(None, see).await?;
    reader.write().await;
    Ok(())
}

struct PageReader<'a> {
    io: &'a Io,
    archive: &'a Archive,
    /// The first message that was not shown, and a log position that it is not before.
    next: (usize, u64),
    /// Pages to be written, and those that are of no use.
    new: Vec<(Key, Option<Vec<u8>>)>,
    bytes: usize,
    writes: bool,
}

impl PageReader<'_> {
    /// Shows the messages before a page, or before the end, as the log has them. What cannot be read is left out, and reported.
    async fn fill(&mut self, before: Option<&Page<'_>>, see: &mut See<'_>) -> Result<()> {
        let (archive, (first, seq)) = (self.archive, self.next);
        let (messages, to) = match before {
            Some(page) => (page.first, page.seqs.0),
            None => (archive.messages, archive.rows),
        };
        if messages <= first {
            return Ok(());
        }
        let mut draft = Draft::new(archive.format, first);
        let mut walk = Walk::at(seq, first);
        while let Some(page) = walk.page(self.io, &archive.sid, to).await? {
            for (seq, bytes) in page {
                let Some((gap, row)) = walk.row(seq, &bytes)? else { continue };
                if let Some(gap) = gap.filter(|gap| gap.messages > 0) {
                    archive.tell(self.io, &gap);
                    // A page has messages that stand one after the other.
                    let before = std::mem::replace(&mut draft, Draft::new(archive.format, row.n));
                    if before.bytes > 0 {
                        self.show(before, true, see).await;
                    }
                }
                if row.kind != RowKind::Message {
                    continue;
                }
                draft.add(row.seq, row.body.get())?;
                if draft.bytes >= FULL {
                    let full = std::mem::replace(&mut draft, Draft::new(archive.format, row.n + 1));
                    self.show(full, true, see).await;
                }
            }
        }
        if let Some(gap) = walk.end(to, messages) {
            archive.tell(self.io, &gap);
        }
        if draft.bytes > 0 {
            // The end of the log grows on.
            self.show(draft, before.is_some(), see).await;
        }
        Ok(())
    }

    async fn show(&mut self, draft: Draft, is_kept: bool, see: &mut See<'_>) {
        let bytes = draft.encode();
        let Some(page) = Page::read(&bytes, self.archive.format) else { return };
        see(&page, page.first);
        self.next = (page.end(), page.seqs.1 + 1);
        let key = keys::terms(&self.archive.sid, page.first);
        if is_kept && bytes.len() <= PART {
            self.change(key, Some(bytes)).await;
        }
    }

    async fn change(&mut self, key: Key, page: Option<Vec<u8>>) {
        self.new.retain(|(known, _)| *known != key);
        self.bytes += page.as_ref().map_or(0, Vec::len);
        self.new.push((key, page));
        if self.bytes >= PART || self.new.len() + 1 >= self.archive.max_batch_ops.min(64) {
            self.write().await;
        }
    }

    /// Writes what is new, unless the session went on since: then the next search does. Nothing depends on it.
    async fn write(&mut self) {
        let new = std::mem::take(&mut self.new);
        self.bytes = 0;
        if new.is_empty() || !self.writes {
            return;
        }
        let expect = vec![(keys::session(&self.archive.sid), Some(self.archive.ver))];
        let mut batch =
            Batch { expect, puts: Vec::new(), deletes: Vec::new(), durability: Durability::Relaxed };
        for (key, page) in new {
            match page {
                Some(page) => batch.puts.push((key, page)),
                None => batch.deletes.push(key),
            }
        }
        self.writes = self.io.commit(batch).await.is_ok();
    }
}
