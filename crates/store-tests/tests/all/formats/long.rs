//! Checking and mending take linear time, however long and broken a history is.

use crate::formats::harness::read;
use context_compactor_core::wire::Format;
use context_compactor_store_tests::histories::{broken, valid};
use fastrand::Rng;
use serde_json::Value;
use std::time::{Duration, Instant};

const MESSAGES: usize = 50_000;
/// More than ten times what it takes.
const LIMIT: Duration = Duration::from_secs(30);

fn long(format: Format, make: impl Fn(&mut Rng) -> Vec<Value>) {
    let mut rng = Rng::with_seed(1);
    let some: Vec<Value> = std::iter::repeat_with(|| make(&mut rng)).take(200).flatten().collect();
    let history: Vec<Value> = some.iter().cycle().take(MESSAGES).cloned().collect();
    let start = Instant::now();
    let (problems, mended) = read(&history, |messages| {
        (format.rules().validate(messages, true).len(), format.rules().repair(messages).0.len())
    });
    let took = start.elapsed();
    println!("{}: {problems} problems, {mended} messages left, {took:?}", format.as_str());
    assert!(took < LIMIT, "{}: {took:?}", format.as_str());
}

#[test]
fn long_broken_histories_take_linear_time() {
    for format in Format::ALL {
        long(format, |rng| broken(format, rng));
    }
}

/// Every call without its result: each mend may break something else.
#[test]
fn long_histories_of_unanswered_calls_take_linear_time() {
    for format in Format::ALL {
        long(format, |rng| {
            let mut history = valid(format, rng);
            let kept = read(&history, |messages| {
                let read = |message| format.wire().read(0, message).expect("it is valid");
                messages.iter().map(|message| read(message).results().next().is_none()).collect::<Vec<_>>()
            });
            let mut kept = kept.into_iter();
            history.retain(|_| kept.next() == Some(true));
            history
        });
    }
}
