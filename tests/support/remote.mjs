/** A page of a browser that no protocol drives: it asks where its address says what to do (`webkit.mjs`). */

const { remote } = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));

if (remote) {
  const tab = crypto.randomUUID();
  for (;;) {
    const order = await (await fetch(`${remote}/?tab=${tab}`)).json();
    if (order.end) {
      location.reload();
      break;
    }
    let answer;
    try {
      answer = { value: await globalThis.sessions[order.step](...order.args) };
    } catch (error) {
      answer = { error: String(error?.stack ?? error) };
    }
    await fetch(remote, { method: "POST", body: JSON.stringify({ tab, ...answer }) });
  }
}
