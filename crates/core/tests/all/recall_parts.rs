//! From a checkpoint to what it replaces: earlier checkpoints, and messages.

use crate::support::*;
use context_compactor_core::Code;
use context_compactor_core::recall::RecallPart;
use context_compactor_store_tests::conversation::exchange;
use serde_json::{Value, json};

impl Harness {
    fn expand(&mut self, checkpoint: &str) -> Vec<RecallPart> {
        self.host.run(self.session.expand(checkpoint.into())).unwrap()
    }

    /// The newest checkpoint of the context, and the messages that it replaces.
    fn newest(&self) -> (String, (usize, usize)) {
        let checkpoints = self.session.checkpoints().unwrap();
        let newest = checkpoints.last().unwrap();
        (newest.id.clone(), newest.message_range)
    }

    /// The messages below a checkpoint.
    fn leaves(&mut self, checkpoint: &str) -> Vec<usize> {
        let parts = self.expand(checkpoint);
        let below = parts.into_iter().flat_map(|part| match part {
            RecallPart::Checkpoint { id, .. } => self.leaves(&id),
            RecallPart::Message { index, .. } => vec![index],
        });
        below.collect()
    }
}

/// A session that was compacted so often, each time with an exchange and some talk before it.
fn compacted(format: context_compactor_core::wire::Format, times: usize) -> (Harness, Vec<String>) {
    let mut harness = Harness::new(json!({ "compactAt": { "tokens": 100_000 }, "keep": { "messages": 1 } }));
    let mut ids = Vec::new();
    for nth in 0..times {
        harness.append(&talk(3, 60));
        harness.append(&exchange(format, &format!("c{nth}"), &long("line of the log", 60)));
        harness.append(&talk(2, 60));
        assert!(harness.compact().success);
        ids.push(harness.newest().0);
    }
    (harness, ids)
}

#[test]
fn x8_a_checkpoint_leads_to_the_one_before_it_and_to_messages_that_can_be_read() {
    for format in FORMATS {
        let (mut harness, ids) = compacted(format, 3);
        let (newest, range) = harness.newest();
        let parts = harness.expand(&newest);
        let RecallPart::Checkpoint { id, message_range, text } = &parts[0] else { panic!("{parts:#?}") };
        assert_eq!((id, message_range.0), (&ids[1], 0));
        assert!(!text.is_empty());
        assert!(parts[1..].iter().all(|part| matches!(part, RecallPart::Message { .. })));
        assert!(matches!(&harness.expand(&ids[1])[0], RecallPart::Checkpoint { id, .. } if *id == ids[0]));
        // All that it replaces, each message once and in order.
        assert_eq!(harness.leaves(&newest), (range.0..range.1).collect::<Vec<_>>(), "{format:?}");
        let first = harness.expand(&ids[0]);
        for part in first.iter().chain(&parts[1..]) {
            let RecallPart::Message { reference, snippet, .. } = part else { panic!("{part:#?}") };
            let (text, begins) = (harness.read(reference), snippet.trim_end_matches('…'));
            assert!(!begins.is_empty() && text.starts_with(begins), "{text} {snippet}");
        }
        let is_result = |part: &&RecallPart| matches!(part, RecallPart::Message { role: "tool", .. });
        let result = serde_json::to_value(first.iter().find(is_result).unwrap()).unwrap();
        assert_eq!((&result["kind"], &result["tool"]), (&json!("message"), &json!("read_file")), "{result}");
        // Who opens it anew sees the same.
        let mut again = Harness::over(harness.memory.clone(), "b", json!({}));
        assert_eq!(again.expand(&newest), parts);
    }
}

#[test]
fn x8_a_compaction_that_was_taken_back_is_no_part_of_a_later_one() {
    for format in FORMATS {
        let (mut harness, ids) = compacted(format, 1);
        harness.host.run(harness.session.undo()).unwrap();
        harness.append(&talk(3, 60));
        assert!(harness.compact().success);
        let (newest, range) = harness.newest();
        assert_ne!(newest, ids[0]);
        assert!(harness.expand(&newest).iter().all(|part| matches!(part, RecallPart::Message { .. })));
        assert_eq!(harness.leaves(&newest), (range.0..range.1).collect::<Vec<_>>());
        // It can still be looked into.
        assert!(!harness.expand(&ids[0]).is_empty());
    }
}

#[test]
fn x8_no_text_leads_anywhere_only_the_id_of_a_checkpoint_that_this_session_made() {
    let (mut harness, ids) = compacted(FORMATS[0], 1);
    let other = compacted(FORMATS[0], 1).1.remove(0);
    let reference = match &harness.expand(&ids[0])[0] {
        RecallPart::Message { reference, .. } => reference.clone(),
        part => panic!("{part:#?}"),
    };
    for id in ["", "cp_", "m0a", &reference, &other, &format!("[{}]", ids[0]), &format!("{} ", ids[0])] {
        if id == ids[0] {
            continue;
        }
        let error = harness.host.run(harness.session.expand(id.to_owned())).unwrap_err();
        assert_eq!(error.code, Code::NotFound, "{id}");
        assert!(error.message.contains("archive.checkpoints()"), "{}", error.message);
    }
    let shown: Value = serde_json::to_value(harness.expand(&ids[0])).unwrap();
    assert!(shown[0]["ref"].is_string() && shown[0]["place"].is_string(), "{shown}");
}
