//! What must hold for jobs: answers that wait for a commit, and leases.

use super::*;
use context_compactor_core::keys::batch::{Key, KeyPart};
use context_compactor_core::step::LogLevel;
use serde_json::Value;
use std::collections::BTreeSet;

/// Longer than every lease, in ms.
const A_DAY: u64 = 86_400_000;

/// How many answers of an earlier job these effects tell of.
pub(super) fn resumed(effects: &[(u32, Effect)]) -> u32 {
    let is_told =
        |effect: &Effect| matches!(effect, Effect::Log(LogLevel::Debug, line) if line.contains("used again"));
    effects.iter().filter(|(_, effect)| is_told(effect)).count() as u32
}

/// Jobs and answers with their rows.
struct Jobs {
    jobs: Vec<(Key, Value)>,
    answers: Vec<(Key, Value)>,
}

impl World {
    fn jobs(rows: &[(Key, Vec<u8>)]) -> Result<Jobs, String> {
        let mut found = Jobs { jobs: Vec::new(), answers: Vec::new() };
        for (key, bytes) in rows {
            if !matches!(key.0.first(), Some(KeyPart::Text(table)) if table == "jobs") {
                continue;
            }
            let row = serde_json::from_slice(bytes).map_err(|error| format!("{key} is no row: {error}"))?;
            if key.0.len() == 3 { &mut found.jobs } else { &mut found.answers }.push((key.clone(), row));
        }
        Ok(found)
    }

    /// After a commit: every answer has its job, and says something.
    pub(super) fn jobs_hold(&mut self, rows: &[(Key, Vec<u8>)]) -> Result<(), String> {
        let Jobs { jobs, answers } = Self::jobs(rows)?;
        let jobs: BTreeSet<&Key> = jobs.iter().map(|(key, _)| key).collect();
        let is_session = |sid: Option<&KeyPart>| {
            rows.iter().any(|(key, _)| matches!(key.0.as_slice(), [KeyPart::Text(table), own] if table == "sessions" && Some(own) == sid))
        };
        for (key, row) in &answers {
            // Those of rows that an erasure left are being removed.
            if self.erases && !is_session(key.0.get(1)) {
                continue;
            }
            if !jobs.contains(&Key(key.0.iter().take(3).cloned().collect())) {
                return Err(format!("{key} is an answer without a job"));
            }
            if row["text"].as_str().is_none_or(str::is_empty) {
                return Err(format!("{key} is an empty answer"));
            }
        }
        self.report.kept = self.report.kept.max(u32::try_from(answers.len()).unwrap_or(u32::MAX));
        Ok(())
    }

    /// Opened when every lease is over: no job of an earlier context is open, and no answer waits that nobody can use.
    pub(super) fn jobs_are_closed(&mut self, tab: usize) -> Result<(), String> {
        for tab in &mut self.tabs {
            tab.host.now += A_DAY;
        }
        self.tabs[tab].session = None;
        self.begin(tab)?;
        self.finish(tab)?;
        let Jobs { jobs, answers } = Self::jobs(&self.memory.rows())?;
        if let Some((key, _)) = jobs.iter().find(|(_, row)| row["state"] == "staging") {
            return Err(format!("{key} is of parts that nobody went on with"));
        }
        let is_open = |row: &Value| row["state"] == "prepared";
        let generation = self.stored.generation;
        if let Some((key, row)) =
            jobs.iter().find(|(_, row)| is_open(row) && row["baseGeneration"] != generation)
        {
            return Err(format!("{key} is open at view {generation}: {row}"));
        }
        let waits = |key: &Key| jobs.iter().any(|(job, row)| is_open(row) && key.0.starts_with(&job.0));
        match answers.iter().find(|(key, _)| !waits(key)) {
            Some((key, _)) => Err(format!("{key} is the answer of a job that ended")),
            None => Ok(()),
        }
    }
}
