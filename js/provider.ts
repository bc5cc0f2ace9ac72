/** The option `summarize.provider`: what `fetch` would refuse, or lose, is refused before any request. */

import { named } from "./advice.js";
import { invalidOption } from "./checks.js";

const FIELD = "summarize.provider.url";

/** Headers as a plain object. `field` is how they were given. */
export function plainHeaders(headers: object, field: string): Record<string, string> {
  if (Array.isArray(headers)) throw invalidOption(field, `must be an object of names and texts, and ${named(headers)} was given`);
  // `Headers`, of whatever realm or library, and a `Map` have no properties of their own.
  const { entries } = headers as { entries?: unknown };
  const pairs = typeof entries === "function" ? Array.from((headers as Map<unknown, unknown>).entries()) : Object.entries(headers);
  const plain = pairs.map(([name, value]) => [String(name), checkedValue(`${field}.${String(name)}`, String(name), value)]);
  return Object.fromEntries(plain) as Record<string, string>;
}

/** Errors say where a value is wrong, and none of it: it is a key. */
function checkedValue(field: string, name: string, value: unknown): string {
  if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name)) {
    throw invalidOption(field, "is no name of a header: a name has letters, digits and hyphens");
  }
  if (typeof value !== "string") {
    const hint = value === undefined ? ": is the key set, as in process.env?" : "";
    throw invalidOption(field, `must be a text, and ${named(value)} was given${hint}`);
  }
  const at = value.search(/[^\t\x20-\x7e\x80-\xff]/);
  if (at < 0) return value;
  if (/[\r\n]/.test(value)) throw invalidOption(field, "has a line break, which no header can carry: trim() what was read from a file");
  const code = (value.codePointAt(at) ?? 0).toString(16).toUpperCase().padStart(4, "0");
  throw invalidOption(field, `has the character U+${code} at position ${at}, which no header can carry: is it the key itself?`);
}

/** Throws for an address that `fetch` would refuse. A path alone is one of the page's server, or of the app's own `fetch`. */
export function checkUrl(url: string, hasFetch: boolean): void {
  const wrong = (what: string) => invalidOption(FIELD, `${what}, as in "https://api.example.com/v1"`);
  const page = (globalThis as { location?: { href?: unknown } }).location?.href;
  const known = typeof page === "string" ? page : hasFetch ? "http://localhost" : undefined;
  const base = /^\/(?!\/)/.test(url) ? known : undefined;
  let parsed: URL;
  try {
    parsed = new URL(url, base);
  } catch {
    throw wrong("must be an absolute address");
  }
  if (!/^https?:$/.test(parsed.protocol)) throw wrong("must begin with https:// or http://");
  if (parsed.username !== "" || parsed.password !== "") {
    throw invalidOption(FIELD, "has a name and password in it, which fetch refuses: give them as headers");
  }
}
