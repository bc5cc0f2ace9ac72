//! An operation under way: the TypeScript layer performs its effects and steps it with what came of them.

use crate::error::{Thrown, thrown};
use crate::stages::{self, Compact, Rest};
use crate::{convert, effect};
use context_compactor_core::step::{CodeStage, Event, Machine, Stepped, go_on};
use js_sys::Function;
use std::cell::RefCell;
use wasm_bindgen::prelude::*;

/// Steps a machine of whatever operation.
type StepFn = dyn FnMut(Option<(u32, Event)>) -> Stepped<Thrown<JsValue>>;

thread_local! {
    /// Performs effects.
    static HOST: RefCell<Option<Function>> = const { RefCell::new(None) };
}

/// Has `host` perform the effects of operations: it is called with each (`effect.rs`), and returns the answer where that is
/// there at once. At the end of an operation it is called with `{ done?, error? }`.
#[wasm_bindgen(js_name = performWith)]
pub fn perform_with(host: Function) {
    HOST.replace(Some(host));
}

/// An operation that waits for answers.
#[wasm_bindgen]
pub struct Operation {
    step: Box<StepFn>,
}

/// What is left of an operation that was begun: nothing where it has ended.
pub(crate) type Begun = Option<Operation>;

impl Operation {
    pub(crate) fn new<T: 'static>(
        mut machine: Machine<T>,
        finish: impl Fn(&T) -> Thrown<JsValue> + 'static,
    ) -> Operation {
        let step = move |answer| {
            let step = machine.step(answer);
            let done = step.done.map(|result| result.map_err(thrown).and_then(|value| finish(&value)));
            (step.effects, done)
        };
        Operation { step: Box::new(step) }
    }

    /// Begins it.
    pub(crate) fn begin(self) -> Begun {
        self.go_on(None)
    }

    fn go_on(mut self, answer: Option<(u32, Event)>) -> Begun {
        let Some(host) = HOST.with_borrow(Option::clone) else { return Some(self) };
        let tell = |told: &JsValue, beside: &JsValue| host.call2(&JsValue::UNDEFINED, told, beside);
        let done = go_on(&mut *self.step, answer, &mut |id, effect| {
            let told = effect::effect(id, &effect).and_then(|(told, beside)| tell(&told, &beside));
            let answer = told.unwrap_or(JsValue::NULL);
            // What could not be handed over is answered with nothing usable.
            (!answer.is_undefined()).then(|| convert::event(&answer))
        });
        let Some(done) = done else { return Some(self) };
        // The host keeps what it throws.
        let _ = tell(&convert::ended(done), &JsValue::UNDEFINED);
        None
    }

    /// What begins at a place that the host handed back.
    pub(crate) fn at<T>(place: Thrown<T>, begin: impl FnOnce(T) -> Operation) -> Operation {
        place.map_or_else(
            |error| {
                let mut error = Some(error);
                Operation { step: Box::new(move |_| (Vec::new(), error.take().map(Err))) }
            },
            begin,
        )
    }

    /// Begins one of stage `compact`, which the host loads if it has to.
    pub(crate) fn of_compact(begin: impl FnOnce(&Compact) -> Operation + 'static) -> Begun {
        Operation::in_stage(CodeStage::Compact, Box::new(|| begin(stages::compact()))).begin()
    }

    /// Begins one of stage `rest`.
    pub(crate) fn of_rest(begin: impl FnOnce(&Rest) -> Operation + 'static) -> Begun {
        Operation::in_stage(CodeStage::Rest, Box::new(|| begin(stages::rest()))).begin()
    }

    fn in_stage(stage: CodeStage, begin: Box<dyn FnOnce() -> Operation>) -> Operation {
        let mut load = Machine::new(move |io| async move { io.load(stage).await });
        let mut begin = Some(begin);
        let mut inside: Option<Box<StepFn>> = None;
        let step = move |answer| {
            if let Some(inside) = &mut inside {
                return inside(answer);
            }
            let loading = load.step(answer);
            match (loading.done, begin.take()) {
                (Some(Ok(())), Some(begin)) => inside.insert(begin().step)(None),
                (done, not_yet) => {
                    begin = not_yet;
                    (loading.effects, done.map(|done| done.map(|()| JsValue::NULL).map_err(thrown)))
                }
            }
        };
        Operation { step: Box::new(step) }
    }
}

#[wasm_bindgen]
impl Operation {
    /// Goes on with the answer to effect `id`. Returns itself as long as it waits for another one.
    pub fn step(self, id: u32, answer: &JsValue) -> Begun {
        self.go_on(Some((id, convert::event(answer))))
    }
}
