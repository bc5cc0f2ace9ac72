//! The stages of the module: parts that the build takes out of it, each into a file of its own. One is entered by a function
//! that returns what is called there. The host loads a stage before anything enters it.

use crate::convert::{self, optional, to_js};
use crate::dto::{CutDto, RepairDto};
use crate::error::{Thrown, thrown};
use crate::operation::Operation;
use crate::session::Session;
use crate::transcript::Importer;
use context_compactor_core::log::SnapshotPurpose;
use context_compactor_core::policy::Settings;
use context_compactor_core::session::Session as CoreSession;
use context_compactor_core::session::transcript::{Importer as CoreImporter, Restore};
use context_compactor_core::standalone;
use context_compactor_core::wire::Format;
use js_sys::{Object, Reflect, Uint8Array};
use serde_json_borrow::Value;
use std::rc::Rc;
use wasm_bindgen::prelude::*;

/// What is called in a stage.
macro_rules! stage {
    ($type:ident, $table:ident { $(fn $name:ident($($given:ident: $of:ty),*) -> $out:ty $body:block)* }) => {
        #[doc = concat!("What is called in stage `", stringify!($table), "`.")]
        pub(crate) struct $type {
            $(pub(crate) $name: fn($($of),*) -> $out),*
        }

        static $table: $type = $type {
            $($name: {
                fn $name($($given: $of),*) -> $out $body
                $name
            }),*
        };
    };
}

/// `fn $name() -> &'static $type`: `$table`, which lies in stage `$stage` with all that nothing else leads to. The build
/// pairs the two sides by their number, of 32 digits.
macro_rules! cut {
    ($stage:literal, $number:literal, $name:ident -> $type:ty = $table:path) => {
        #[cfg(target_family = "wasm")]
        #[allow(unsafe_code, improper_ctypes, improper_ctypes_definitions)]
        pub(crate) fn $name() -> &'static $type {
            #[link(wasm_import_module = "__wasm_split_placeholder__")]
            unsafe extern "C" {
                #[link_name = concat!("__wasm_split_00", $stage, "00_import_", $number)]
                safe fn enter() -> &'static $type;
            }
            #[unsafe(export_name = concat!("__wasm_split_00", $stage, "00_export_", $number))]
            extern "C" fn inside() -> &'static $type {
                &$table
            }
            enter()
        }

        #[cfg(not(target_family = "wasm"))]
        pub(crate) fn $name() -> &'static $type {
            &$table
        }
    };
}

cut!("compact", "00000000000000000000000000000001", compact -> Compact = COMPACT);
cut!("rest", "00000000000000000000000000000002", rest -> Rest = REST);

#[cfg(target_family = "wasm")]
mod link {
    use context_compactor_core::compaction::{LADDER, Ladder, TO_LADDER};
    use context_compactor_core::log::{TO_UPKEEP, UPKEEP, Upkeep};
    use context_compactor_core::session::{BRANCHING, Branching, LIVE, Live, MENDING, Mending};
    use context_compactor_core::session::{TO_BRANCHING, TO_LIVE, TO_MENDING};
    use wasm_bindgen::prelude::wasm_bindgen;

    cut!("compact", "00000000000000000000000000000003", ladder -> Ladder = LADDER);
    cut!("compact", "00000000000000000000000000000004", mending -> Mending = MENDING);
    cut!("rest", "00000000000000000000000000000005", upkeep -> Upkeep = UPKEEP);
    cut!("rest", "00000000000000000000000000000006", branching -> Branching = BRANCHING);
    cut!("rest", "00000000000000000000000000000007", live -> Live = LIVE);

    /// Links the engine with its stages, before anything is called.
    #[wasm_bindgen(start)]
    fn link() {
        TO_LADDER.link(ladder);
        TO_MENDING.link(mending);
        TO_UPKEEP.link(upkeep);
        TO_BRANCHING.link(branching);
        TO_LIVE.link(live);
    }
}

type Bodies = Vec<Rc<str>>;

stage!(Compact, COMPACT {
    fn once(settings: Rc<Settings>, bodies: Bodies) -> Operation {
        Operation::new(CoreSession::compact_once(settings, bodies), to_js)
    }
    fn carried(settings: Rc<Settings>, bodies: Bodies, state: Option<String>) -> Operation {
        Operation::new(CoreSession::compact_carried(settings, bodies, state), to_js)
    }
    fn plan_once(settings: Rc<Settings>, bodies: Bodies) -> Operation {
        Operation::new(CoreSession::plan_once(settings, bodies), to_js)
    }
    fn compact(core: &CoreSession, instructions: Option<String>) -> Operation {
        Operation::new(core.compact(instructions), to_js)
    }
    fn plan(core: &CoreSession) -> Operation {
        Operation::new(core.plan(), to_js)
    }
    fn preview(core: &CoreSession) -> Operation {
        Operation::new(core.preview(), to_js)
    }
    fn summarise_later(core: &CoreSession) -> Operation {
        Operation::new(core.summarise_later(), to_js)
    }
    fn summary_prompt(bodies: &[Rc<str>], options: &Value<'_>) -> Thrown<JsValue> {
        to_js(&standalone::summary_prompt(bodies, options).map_err(thrown)?)
    }
    fn split(bodies: &[Rc<str>], pinned: &[usize], options: &Value<'_>) -> Thrown<JsValue> {
        to_js(&CutDto::from(standalone::split(bodies, pinned, options).map_err(thrown)?))
    }
    fn propose_pins(bodies: &[Rc<str>], options: &Value<'_>) -> Thrown<JsValue> {
        to_js(&standalone::propose_pins(bodies, options).map_err(thrown)?)
    }
    fn extractive(bodies: &[Rc<str>], options: &Value<'_>) -> Thrown<String> {
        standalone::extractive(bodies, options).map_err(thrown)
    }
    fn pin_proposals(core: &CoreSession, since: Option<u64>) -> Thrown<JsValue> {
        to_js(&core.pin_proposals(since).map_err(thrown)?)
    }
    fn stats(core: &CoreSession) -> Thrown<JsValue> {
        to_js(&core.stats().map_err(thrown)?)
    }
    fn trajectory(core: &CoreSession) -> Thrown<String> {
        Ok(core.trajectory().map_err(thrown)?.json())
    }
});

stage!(Rest, REST {
    fn recall_carried(settings: Rc<Settings>, bodies: Bodies, state: Option<String>, max_batch_ops: usize) -> Operation {
        let begin = CoreSession::recall_carried(settings, bodies, state, max_batch_ops);
        Operation::new(begin, |core| Ok(JsValue::from(Session { core: core.clone() })))
    }
    fn read(core: &CoreSession, reference: String, offset: usize, limit: Option<usize>) -> Operation {
        Operation::new(core.read(reference, offset, limit), to_js)
    }
    fn set_goal(core: &CoreSession, json: String) -> Operation {
        Operation::new(core.set_goal(json), |()| Ok(JsValue::NULL))
    }
    fn apply_markers(core: &CoreSession, output: String) -> Operation {
        Operation::new(core.apply_markers(output), to_js)
    }
    fn pin(core: &CoreSession, index: usize) -> Operation {
        Operation::new(core.pin(index), |()| Ok(JsValue::NULL))
    }
    fn reject_pin(core: &CoreSession, index: usize) -> Operation {
        Operation::new(core.reject_pin(index), |()| Ok(JsValue::NULL))
    }
    fn explain(core: &CoreSession) -> Thrown<JsValue> {
        to_js(&core.explain().map_err(thrown)?)
    }
    fn estimate(bodies: &[Rc<str>], options: &Value<'_>) -> Thrown<JsValue> {
        to_js(&standalone::estimate_detailed(bodies, options).map_err(thrown)?)
    }
    fn estimate_text(text: &str, options: &Value<'_>) -> Thrown<JsValue> {
        to_js(&standalone::estimate_text_detailed(text, options).map_err(thrown)?)
    }
    fn texts(bodies: &[Rc<str>], options: &Value<'_>) -> Thrown<JsValue> {
        Ok(convert::texts(&standalone::texts(bodies, options).map_err(thrown)?))
    }
    fn validate(bodies: &[Rc<str>], options: &Value<'_>) -> Thrown<JsValue> {
        to_js(&standalone::validate(bodies, options).map_err(thrown)?)
    }
    fn repair(bodies: &[Rc<str>], options: &Value<'_>) -> Thrown<JsValue> {
        let (parts, changes) = standalone::repair(bodies, options).map_err(thrown)?;
        to_js(&RepairDto::new(parts, changes))
    }
    fn rewind(core: &CoreSession, index: usize) -> Operation {
        Operation::new(core.rewind(index), |()| Ok(JsValue::NULL))
    }
    fn erase(core: &CoreSession, index: usize, reason: String) -> Operation {
        Operation::new(core.erase(index, reason), |()| Ok(JsValue::NULL))
    }
    fn fork(core: &CoreSession, id: Option<String>) -> Operation {
        Operation::new(core.fork(id), |(core, forked)| Ok(Session::opened(core, forked)?.into()))
    }
    fn children(core: &CoreSession) -> Operation {
        Operation::new(core.children(), to_js)
    }
    fn remove_messages(core: &CoreSession, indices: Vec<usize>) -> Operation {
        Operation::new(core.remove_messages(indices), to_js)
    }
    fn snapshot(core: &CoreSession, purpose: SnapshotPurpose) -> Operation {
        Operation::new(core.snapshot(purpose), |id| Ok(JsValue::from_str(id)))
    }
    fn snapshots(core: &CoreSession) -> Operation {
        Operation::new(core.snapshots(), to_js)
    }
    fn restore(core: &CoreSession, id: String) -> Operation {
        Operation::new(core.restore(id), |()| Ok(JsValue::NULL))
    }
    fn undo(core: &CoreSession) -> Operation {
        Operation::new(core.undo(), |()| Ok(JsValue::NULL))
    }
    fn verify(core: &CoreSession) -> Operation {
        Operation::new(core.verify(), to_js)
    }
    fn search(core: &CoreSession, query: String, limit: usize) -> Operation {
        Operation::new(core.search(query, limit), to_js)
    }
    fn expand(core: &CoreSession, checkpoint: String) -> Operation {
        Operation::new(core.expand(checkpoint), to_js)
    }
    fn answer(core: &CoreSession, call: String, format: Format) -> Operation {
        Operation::new(core.answer(call, format), |message| Ok(JsValue::from_str(message)))
    }
    fn delete(core: &CoreSession) -> Operation {
        Operation::new(core.delete(), |()| Ok(JsValue::NULL))
    }
    fn list() -> Operation {
        Operation::new(CoreSession::list(), to_js)
    }
    fn delete_named(id: String, max_batch_ops: usize) -> Operation {
        Operation::new(CoreSession::delete_named(id, max_batch_ops), |()| Ok(JsValue::NULL))
    }
    fn remains() -> Operation {
        Operation::new(CoreSession::remains(), to_js)
    }
    fn restore_backup(id: String) -> Operation {
        Operation::new(CoreSession::restore_backup(id), |schema| Ok(JsValue::from(*schema)))
    }
    fn history(core: &CoreSession, cursor: JsValue) -> Operation {
        Operation::at(optional(cursor), |cursor| Operation::new(core.history(cursor), to_js))
    }
    fn markdown(core: &CoreSession, cursor: JsValue) -> Operation {
        Operation::at(optional(cursor), |cursor| Operation::new(core.markdown(cursor), to_js))
    }
    fn export_page(core: &CoreSession, cursor: JsValue) -> Operation {
        Operation::at(optional(cursor), |cursor| Operation::new(core.export(cursor.unwrap_or_default()), |(bytes, next)| {
            let object = Object::new();
            let bytes = Uint8Array::from(bytes.as_slice());
            Reflect::set(&object, &JsValue::from_str("bytes"), &bytes)?;
            if let Some(next) = next {
                Reflect::set(&object, &JsValue::from_str("next"), &to_js(next)?)?;
            }
            Ok(object.into())
        }))
    }
    fn checkpoint_records(core: &CoreSession) -> Operation {
        Operation::new(core.checkpoint_records(), to_js)
    }
    fn import(settings: Rc<Settings>, id: Option<String>, restore: Restore, max_batch_ops: usize) -> Operation {
        let begin = CoreImporter::open(settings, id, restore, max_batch_ops);
        Operation::new(begin, |core| Ok(JsValue::from(Importer { core: core.clone() })))
    }
    fn feed(core: &CoreImporter, bytes: Vec<u8>) -> Operation {
        Operation::new(core.feed(bytes), |()| Ok(JsValue::NULL))
    }
    fn finish(core: &CoreImporter) -> Operation {
        Operation::new(core.finish(), |(core, opened, report)| {
            let object = Session::opened(core, opened)?;
            Reflect::set(&object, &JsValue::from_str("report"), &to_js(report)?)?;
            Ok(object.into())
        })
    }
    fn abandon(core: &CoreImporter) -> Operation {
        Operation::new(core.abandon(), |()| Ok(JsValue::NULL))
    }
});
