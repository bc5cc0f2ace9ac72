//! An operation under way: the TypeScript layer performs its effects and steps it with what came of them.

use crate::convert;
use crate::error::{Thrown, thrown};
use crate::stages::{self, Compact, Rest};
use context_compactor_core::step::{CodeStage, Effect, Event, Machine};
use js_sys::{Array, Object, Reflect};
use wasm_bindgen::prelude::*;

/// Steps a machine of whatever operation.
type StepFn = dyn FnMut(Option<(u32, Event)>) -> Stepped;

/// What a step led to, before conversion.
type Stepped = (Vec<(u32, Effect)>, Option<Result<JsValue, JsValue>>);

/// An operation under way.
#[wasm_bindgen]
pub struct Operation {
    step: Box<StepFn>,
}

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

    /// One of stage `compact`, which the host loads if it has to.
    pub(crate) fn of_compact(begin: impl FnOnce(&Compact) -> Operation + 'static) -> Operation {
        Operation::in_stage(CodeStage::Compact, Box::new(|| begin(stages::compact())))
    }

    /// One of stage `rest`.
    pub(crate) fn of_rest(begin: impl FnOnce(&Rest) -> Operation + 'static) -> Operation {
        Operation::in_stage(CodeStage::Rest, Box::new(|| begin(stages::rest())))
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
    /// Starts the operation (no arguments), or goes on with the answer to effect `id`. Returns
    /// `{ effects, done?, error? }`.
    pub fn step(&mut self, id: Option<u32>, answer: JsValue) -> Thrown<JsValue> {
        let (effects, done) = (self.step)(id.map(|id| (id, convert::event(&answer))));
        let object = Object::new();
        let converted = effects.iter().map(|(id, effect)| convert::effect(*id, effect));
        let converted: Array = converted.collect::<Thrown<Vec<_>>>()?.into_iter().collect();
        Reflect::set(&object, &JsValue::from_str("effects"), &converted)?;
        match done {
            Some(Ok(value)) => Reflect::set(&object, &JsValue::from_str("done"), &value)?,
            Some(Err(error)) => Reflect::set(&object, &JsValue::from_str("error"), &error)?,
            None => false,
        };
        Ok(object.into())
    }
}
