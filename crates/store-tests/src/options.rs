//! Options over others.

use serde_json::Value;

/// Puts the options of `over` over `options`: groups into groups; anything else takes the place of what there was.
pub fn merge(options: &mut Value, over: &Value) {
    match (options, over) {
        (Value::Object(options), Value::Object(over)) => {
            for (key, value) in over {
                merge(options.entry(key.as_str()).or_insert(Value::Null), value);
            }
        }
        (options, over) => *options = over.clone(),
    }
}
