/** Requests to the provider, through the app's `fetch` or the global one. */

import { ownHeaders } from "./answers.js";

/** A request as the engine wants it sent. */
export interface HttpRequest {
  method: string;
  url: string;
  headers: [string, string][];
  body: string;
}

/** What came back. */
export interface HttpResponse {
  status: number;
  headers: [string, string][];
  body: string;
}

/** Sends it. Rejects with what `fetch` threw. */
export async function send(
  { method, url, headers, body }: HttpRequest,
  own: typeof fetch | undefined,
  signal: AbortSignal,
): Promise<HttpResponse> {
  const response = await (own ?? globalThis.fetch)(url, { method, headers, body, signal });
  return { status: response.status, headers: ownHeaders(response.headers), body: await response.text() };
}

/** What is said of a request that had no answer: where it went, without what may be secret in it, and what stopped it. */
export function unsent(url: string, thrown: unknown): string {
  const told = messageOf(thrown);
  const root = innermost(thrown);
  const why = root === undefined || told.includes(root) ? "" : `: ${root}`;
  return `the request to ${placeOf(url)} failed (${told}${why})`;
}

/** An address without its query and credentials. */
function placeOf(url: string): string {
  return url.replace(/[?#].*$/s, "").replace(/\/\/[^/@]*@/, "//");
}

function messageOf(thrown: unknown): string {
  const { message, code } = Object(thrown) as { message?: unknown; code?: unknown };
  const said = [message, code].find((text) => typeof text === "string" && text !== "");
  return typeof said === "string" ? said : String(thrown);
}

/** How deep causes are followed: one may be its own. */
const DEPTH = 8;

/** What the cause at the end of the chain says; where several were tried, that of the first. */
function innermost(thrown: unknown): string | undefined {
  let found: unknown = thrown;
  for (let depth = 0; depth < DEPTH; depth++) {
    const { cause, errors } = Object(found) as { cause?: unknown; errors?: unknown };
    const next: unknown = cause ?? (Array.isArray(errors) ? (errors as unknown[])[0] : undefined);
    if (next === undefined || next === null) break;
    found = next;
  }
  if (found === thrown) return undefined;
  const { code } = Object(found) as { code?: unknown };
  const told = messageOf(found);
  return typeof code === "string" && !told.includes(code) ? `${told} (${code})` : told;
}
