//! Sessions that are gone.

use super::watermark::Watermark;
use crate::error::{Code, Error};
use crate::step::{Loss, LossKind};

/// The loss of a session that its watermark knows.
pub(super) fn lost_session(mark: &Watermark) -> Loss {
    let reason = "the session that was stored under this id is not in the store any more";
    Loss::records(LossKind::Session, mark.next_seq, reason)
}

/// Why a session that the app knows of is not begun.
pub(super) fn absent(id: &str) -> Error {
    let what = format!(
        "there is no session called {id:?} in the store, and `mustExist` says that there was one: import a copy of it under \
         this id, or open it without `mustExist` to begin anew"
    );
    Error::new(Code::DataLoss, what)
}

/// Why a handle on a session cannot go on, whose rows the platform took.
pub(super) fn gone() -> Error {
    let what = "the session is not in the store any more, and nobody deleted it: open it again, to be told what is left of it";
    Error::new(Code::DataLoss, what)
}

/// Why a session is not begun anew under the name of one that is gone.
pub(super) fn refused(reason: &str) -> Error {
    let what = format!(
        "{reason}; open it with `acceptDataLoss: true` to begin anew, or import a copy of it under the same id"
    );
    Error::new(Code::DataLoss, what)
}
