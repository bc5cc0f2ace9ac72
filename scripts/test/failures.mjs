/** A reporter of Node's test runner: what failed and why, for the end of a long run. */
export default async function* failures(events) {
  for await (const { type, data } of events) {
    // What is still to do is no failure.
    if (type !== "test:fail" || data.details.type === "suite" || data.todo !== undefined) continue;
    const { error } = data.details;
    const why = error?.cause?.stack ?? error?.cause ?? error?.message ?? error;
    const text = String(why).split("\n").slice(0, 12).join("\n    ");
    yield `${data.file ?? ""} ${data.name} (${Math.round(data.details.duration_ms)} ms)\n    ${text}\n`;
  }
}
