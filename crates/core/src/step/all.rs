//! Several things at once, in order.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

/// A piece of work that is not begun.
pub(crate) type Work<'w, T> = Pin<Box<dyn Future<Output = T> + 'w>>;

/// Runs pieces of work, at most `limit` at a time; the results are in the order of the work. Every answer of the host
/// polls what is under way, for there are no wakers.
pub(crate) async fn all<T>(work: Vec<Work<'_, T>>, limit: usize) -> Vec<T> {
    let mut slots: Vec<(Option<Work<'_, T>>, Option<T>)> =
        work.into_iter().map(|work| (Some(work), None)).collect();
    poll_fn(|context| {
        let mut under_way = 0;
        for (work, done) in &mut slots {
            let Some(future) = work else { continue };
            if under_way == limit.max(1) {
                return Poll::Pending;
            }
            match future.as_mut().poll(context) {
                Poll::Ready(value) => (*work, *done) = (None, Some(value)),
                Poll::Pending => under_way += 1,
            }
        }
        if under_way == 0 { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    slots.into_iter().filter_map(|(_, done)| done).collect()
}
