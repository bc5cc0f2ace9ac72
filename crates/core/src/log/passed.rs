//! What a handle passes on to one that opens its session in its place: it tells or knows it once, and no row has it.

use super::limits::LimitsTold;
use super::record;
use super::state::State;
use crate::error::{Code, Error, Result};

/// What is passed on.
#[derive(Debug)]
pub(crate) struct PassedOn {
    failures: u32,
    began_anew: Option<u64>,
    told_room: bool,
    model: Option<String>,
    told: LimitsTold,
}

crate::wire::record!(PassedOn {
    failures = "failures",
    began_anew = "beganAnew" or nothing,
    told_room = "toldRoom",
    model = "model" or nothing,
    told = "told",
});

impl State {
    /// True when whoever opens the session now has the same context, and all that it still has to do.
    pub(crate) fn can_pass_on(&self) -> bool {
        self.row.ver > 0 && self.is_stored() == Some(true) && self.unseen_from.is_none()
    }

    /// What it passes on, as JSON text.
    pub(crate) fn passed_on(&self) -> String {
        let passed = PassedOn {
            failures: self.failures,
            began_anew: self.began_anew,
            told_room: self.told_room,
            model: self.reported_model.clone(),
            told: self.limits_told,
        };
        String::from_utf8_lossy(&record::encode(&passed)).into_owned()
    }

    /// Takes over what another one passed on.
    ///
    /// Errors: [`Code::Poisoned`] for anything else.
    pub(crate) fn take_over(&mut self, passed: &str) -> Result<()> {
        let PassedOn { failures, began_anew, told_room, model, told } = crate::wire::record::from_str(passed)
            .map_err(|error| {
                Error::new(Code::Poisoned, format!("what was passed on cannot be read: {error}"))
            })?;
        (self.failures, self.began_anew, self.told_room) = (failures, began_anew, told_room);
        (self.reported_model, self.limits_told) = (model, told);
        Ok(())
    }
}
