//! Transcripts: pages out, bytes in. They are in stage `rest`.

use crate::convert::{settings, to_js};
use crate::error::{Thrown, thrown};
use crate::operation::{Begun, Operation};
use crate::session::Session;
use context_compactor_core::session::transcript::{Importer as CoreImporter, Restore};
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
impl Session {
    /// `{ messages: [{ seq, index, body }], next? }`.
    pub fn history(&self, cursor: JsValue) -> Begun {
        self.of_rest(|stage, core| (stage.history)(core, cursor))
    }

    /// `{ text, next? }`.
    pub fn markdown(&self, cursor: JsValue) -> Begun {
        self.of_rest(|stage, core| (stage.markdown)(core, cursor))
    }

    /// `{ bytes, next? }`.
    #[wasm_bindgen(js_name = exportPage)]
    pub fn export_page(&self, cursor: JsValue) -> Begun {
        self.of_rest(|stage, core| (stage.export_page)(core, cursor))
    }

    /// Every checkpoint that was ever made.
    #[wasm_bindgen(js_name = checkpointRecords)]
    pub fn checkpoint_records(&self) -> Begun {
        self.of_rest(|stage, core| (stage.checkpoint_records)(core))
    }

    /// `{ startTime, lastUpdate, totalMessages, totalTokens, compressionCount }`.
    pub fn metadata(&self) -> Thrown<JsValue> {
        to_js(&self.core.metadata().map_err(thrown)?)
    }
}

/// An import under way.
#[wasm_bindgen]
pub struct Importer {
    pub(crate) core: CoreImporter,
}

#[wasm_bindgen]
impl Importer {
    /// The importer.
    pub fn open(given: JsValue, id: Option<String>, from: &str, max_batch_ops: usize) -> Thrown<Begun> {
        let restore = Restore::named(from).map_err(thrown)?;
        let settings = settings(given)?;
        Ok(Operation::of_rest(move |stage| (stage.import)(settings, id, restore, max_batch_ops)))
    }

    /// Nothing: takes the next bytes.
    pub fn feed(&self, bytes: Vec<u8>) -> Begun {
        let core = self.core.clone();
        Operation::of_rest(move |stage| (stage.feed)(&core, bytes))
    }

    /// `{ id, format?, messages, handle, report }`.
    pub fn finish(&self) -> Begun {
        let core = self.core.clone();
        Operation::of_rest(move |stage| (stage.finish)(&core))
    }

    /// Nothing: removes what was written.
    pub fn abandon(&self) -> Begun {
        let core = self.core.clone();
        Operation::of_rest(move |stage| (stage.abandon)(&core))
    }
}
