//! Whether there is anything to do before a prompt is sent. It is asked every time, and most times there is not: the ladder,
//! which most conversations never need, is climbed only then.

use super::{admit, clear, emergency, media, process, reread, server};
use crate::log::View;
use crate::policy::{Rung, Trigger};

/// False where a climb would change nothing. Where it is true, the rungs themselves may find that they have nothing to do.
pub(crate) fn is_due(view: &View, trigger: Trigger) -> bool {
    trigger != Trigger::Auto
        || view.usage.is_due
        || !view.fits()
        || server::is_foreign(view)
        || view.settings.rungs.iter().any(|rung| match rung {
            Rung::Process => process::may_process(view),
            Rung::Admit => admit::may_admit(view) || reread::may_reread(view),
            Rung::Clear => clear::may_clear(view),
            // It reads the results first.
            Rung::Compress => true,
            Rung::Media => media::may_leave(view),
            Rung::Rollover => !emergency::has_room(view),
            // These are for a context that acts, or does not fit.
            Rung::Offload | Rung::Summarise | Rung::Age | Rung::Merge => false,
        })
}
