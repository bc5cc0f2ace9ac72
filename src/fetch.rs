//! The global `fetch`, for apps that give a provider and no `fetch` of their own.

use gloo_net::http::{Headers, Method, RequestBuilder};
use wasm_bindgen::prelude::*;
use web_sys::AbortSignal;

/// Sends a POST request; resolves to `{ status, headers: [name, value][], body }`, rejects with what `fetch` threw.
///
/// # Errors
///
/// What `fetch` threw.
#[wasm_bindgen(js_name = globalFetch)]
pub async fn global_fetch(
    url: String,
    headers: Vec<String>,
    body: String,
    signal: AbortSignal,
) -> Result<JsValue, JsValue> {
    let sent = Headers::new();
    for pair in headers.chunks_exact(2) {
        if let [name, value] = pair {
            sent.append(name, value);
        }
    }
    let request = RequestBuilder::new(&url).method(Method::POST).headers(sent).abort_signal(Some(&signal));
    let response = request.body(body).map_err(original)?.send().await.map_err(original)?;
    let received = response.headers().entries().map(|(name, value)| (name.to_lowercase(), value));
    let answer = Answer { status: response.status(), headers: received.collect(), body: String::new() };
    let body = response.text().await.map_err(original)?;
    crate::convert::to_js(&Answer { body, ..answer })
}

#[derive(serde::Serialize)]
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

fn original(error: gloo_net::Error) -> JsValue {
    match error {
        gloo_net::Error::JsError(error) => {
            let thrown = js_sys::Error::new(&error.message);
            thrown.set_name(&error.name);
            thrown.into()
        }
        other => JsValue::from(js_sys::Error::new(&other.to_string())),
    }
}
