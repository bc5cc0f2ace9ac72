//! Transcripts: pages out, bytes in.

use crate::convert::{optional, settings, to_js};
use crate::error::{Thrown, thrown};
use crate::operation::Operation;
use crate::session::Session;
use context_compactor_core::session::transcript::{Importer as CoreImporter, Restore};
use js_sys::{Object, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;

#[wasm_bindgen]
impl Session {
    /// `{ messages: [{ seq, index, body }], next? }`.
    pub fn history(&self, cursor: JsValue) -> Thrown<Operation> {
        Ok(Operation::new(self.core.history(optional(cursor)?), to_js))
    }

    /// `{ text, next? }`.
    pub fn markdown(&self, cursor: JsValue) -> Thrown<Operation> {
        Ok(Operation::new(self.core.markdown(optional(cursor)?), to_js))
    }

    /// `{ bytes, next? }`.
    #[wasm_bindgen(js_name = exportPage)]
    pub fn export_page(&self, cursor: JsValue) -> Thrown<Operation> {
        Ok(Operation::new(self.core.export(optional(cursor)?.unwrap_or_default()), |(bytes, next)| {
            let object = Object::new();
            let bytes = Uint8Array::from(bytes.as_slice());
            Reflect::set(&object, &JsValue::from_str("bytes"), &bytes)?;
            if let Some(next) = next {
                Reflect::set(&object, &JsValue::from_str("next"), &to_js(next)?)?;
            }
            Ok(object.into())
        }))
    }

    /// Every checkpoint that was ever made.
    #[wasm_bindgen(js_name = checkpointRecords)]
    pub fn checkpoint_records(&self) -> Operation {
        Operation::new(self.core.checkpoint_records(), to_js)
    }

    /// `{ startTime, lastUpdate, totalMessages, totalTokens, compressionCount }`.
    pub fn metadata(&self) -> Thrown<JsValue> {
        to_js(&self.core.metadata().map_err(thrown)?)
    }
}

/// An import under way.
#[wasm_bindgen]
pub struct Importer {
    core: CoreImporter,
}

#[wasm_bindgen]
impl Importer {
    /// The importer.
    pub fn open(given: JsValue, id: Option<String>, from: &str, max_batch_ops: usize) -> Thrown<Operation> {
        let restore = Restore::named(from).map_err(thrown)?;
        let begin = CoreImporter::open(settings(given)?, id, restore, max_batch_ops);
        Ok(Operation::new(begin, |core| Ok(JsValue::from(Importer { core: core.clone() }))))
    }

    /// Nothing: takes the next bytes.
    pub fn feed(&self, bytes: Vec<u8>) -> Operation {
        Operation::new(self.core.feed(bytes), |()| Ok(JsValue::NULL))
    }

    /// `{ id, format?, messages, handle, report }`.
    pub fn finish(&self) -> Operation {
        Operation::new(self.core.finish(), |(core, opened, report)| {
            let object = Session::opened(core, opened)?;
            Reflect::set(&object, &JsValue::from_str("report"), &to_js(report)?)?;
            Ok(object.into())
        })
    }

    /// Nothing: removes what was written.
    pub fn abandon(&self) -> Operation {
        Operation::new(self.core.abandon(), |()| Ok(JsValue::NULL))
    }
}
