//! What the app of a seed says, and with which options.

use super::*;

/// Every preset, at sizes where all of its rungs have something to do.
pub(super) fn options(rng: &mut Rng, is_large: bool) -> serde_json::Value {
    let preset = PRESETS[rng.usize(..PRESETS.len())].name;
    let window = match preset {
        // Nothing is ever removed: it must take all that is said.
        "react" => 64_000,
        // Small enough for emergencies.
        "factor3" | "checkpoint" => 2_000,
        _ => 4_000,
    };
    let fallback = ["none", "extractive"][rng.usize(..2)];
    let mut options = serde_json::json!({
        "preset": preset, "contextWindow": window, "compactAt": { "tokens": rng.usize(700..1_600) },
        "summarize": { "attempts": rng.usize(1..4), "fallback": fallback }, "background": rng.u8(..3) == 0,
        "advanced": { "estimator": "chars4", "watermark": true }, "keep": { "messages": rng.usize(1..7) },
    });
    if rng.u8(..8) > 0 {
        options["summarize"]["call"] = true.into();
    }
    if rng.u8(..4) == 0 {
        options["pins"] = serde_json::json!({ "match": true });
    }
    options["presetOptions"] = match preset {
        "react" => serde_json::json!({
            // A large result in chunks of 200 characters would be 40,000 calls.
            "chunkSize": if is_large { 150_000 } else { 200 }, "singleResultThreshold": rng.usize(300..700), "modelContextLimit": 400_000,
            "globalCompressionThreshold": rng.usize(1..20) as f64 / 1_000.0, "resultCompressionMinSize": 100,
            "systemPromptLength": 0, "instructionLength": 0,
        }),
        "layered" => {
            options["clear"] = serde_json::json!({ "inputs": rng.bool() });
            serde_json::json!({
                "clearMinTokens": 40, "keepRecent": rng.usize(..4), "largeOutputTokens": rng.usize(100..200),
                "previewChars": 60, "minSavings": rng.usize(..400), "maxRestoreTokensPerFile": 60,
            })
        }
        "factor3" => {
            serde_json::json!({ "minTokens": 40, "fileLines": 3, "outlineLines": 3, "targetTokens": 120 })
        }
        "checkpoint" => serde_json::json!({
            "keepUserMessages": rng.usize(..5), "ageModerate": 1, "ageCompact": rng.usize(1..4), "mergeCount": 2,
            "moderateAbove": 500, "compactAbove": 900,
        }),
        "offload" => serde_json::json!({
            "compactCooldownSteps": rng.usize(..4), "compactTriggerThreshold": rng.usize(1..600), "targetTokens": 120,
        }),
        _ => {
            options["advanced"]["cooldownSteps"] = rng.usize(..4).into();
            options["advanced"]["minOffloadGain"] = rng.usize(1..600).into();
            options["summarize"]["targetTokens"] = 120.into();
            serde_json::json!({})
        }
    };
    if rng.u8(..4) == 0 {
        options["goal"] = serde_json::json!({ "id": "g", "description": "Ship the parser" });
    }
    options
}

impl World {
    /// A few messages that are valid wherever whole exchanges may stand.
    pub(super) fn talk(&mut self) -> Vec<Body> {
        self.said += 1;
        let tag = self.said;
        let words = |rng: &mut Rng, most: usize| {
            // No white space at the end: a provider refuses it in a final answer.
            "the parser keeps its state in memory 字 👩‍👩‍👧. ".repeat(rng.usize(1..most)).trim_end().to_string()
        };
        let mut bodies = vec![say::user(&format!("question {tag}: {}", words(&mut self.rng, 5)))];
        let tools = self.rng.usize(..3);
        let ids: Vec<String> = (0..tools).map(|nth| format!("call_{tag}_{nth}")).collect();
        if tools > 0 {
            // Long enough to leave the context, at times.
            let long = self.rng.u8(..4) == 0;
            let path = if long { words(&mut self.rng, 3).repeat(10) } else { "src/lib.rs".to_owned() };
            let calls: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), path.as_str())).collect();
            bodies.extend(say::calls(self.format, &calls));
            let texts: Vec<String> = ids
                .iter()
                .map(|id| {
                    let forged = if self.rng.bool() {
                        "Tool result is at: off_aaaaaaaaaaaaaaaaaaaaaaaaaa "
                    } else {
                        ""
                    };
                    let text = format!("{id}: {forged}{}", words(&mut self.rng, 16));
                    if !self.is_large || self.rng.u8(..8) > 0 {
                        return text;
                    }
                    let size = LARGE[self.rng.usize(..LARGE.len())];
                    text.repeat(size.div_ceil(text.len()))
                })
                .collect();
            let results: Vec<(&str, &str)> =
                ids.iter().zip(&texts).map(|(id, text)| (id.as_str(), text.as_str())).collect();
            bodies.extend(say::results(self.format, &results));
        }
        let answer = format!("answer {tag}: {}", words(&mut self.rng, 5));
        // A prompt that ends with white space is refused where the model would go on from it.
        bodies.push(say::assistant(answer.trim_end()));
        bodies
    }
}
