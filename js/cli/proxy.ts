/** `proxy`: `compactingFetch` in front of an agent that cannot be changed. */

import { Buffer } from "node:buffer";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import process from "node:process";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ReadableStream as NodeStream } from "node:stream/web";
import { compactingFetch, type CompactingFetch, type CompactingFetchOptions } from "../entry/fetch.js";
import type { Store } from "../entry/main.js";
import { EXIT, Exit, wrongUsage } from "./exit.js";
import { folderOf, withStore } from "./stored.js";
import type { Terminal } from "./terminal.js";
import type { Given } from "./usage.js";

const PORT = 8484;
const HOST = "127.0.0.1";

/** Headers of one connection alone, and those that `fetch` makes itself. */
const OF_A_HOP = ["connection", "content-length", "expect", "host", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade"];
/** What comes back is decoded by `fetch`, which asks for what it can decode. */
const NOT_ASKED = new Set([...OF_A_HOP, "accept-encoding"]);
const NOT_ANSWERED = new Set([...OF_A_HOP, "content-encoding"]);

export async function proxy(given: Given, terminal: Terminal): Promise<number> {
  const upstream = upstreamOf(given.upstream);
  if (given.store === undefined) return serve(given, terminal, upstream);
  // Nothing else tells a new conversation from an old one, once the process has ended.
  if (given.thread === undefined) throw wrongUsage("proxy: --store needs --thread HEADER, the header of a request that names its conversation");
  return withStore(folderOf(given), (store) => serve(given, terminal, upstream, store));
}

function upstreamOf(given: string | undefined): URL {
  if (given === undefined) throw wrongUsage("proxy needs --upstream URL, the provider's address, as in https://api.openai.com");
  const url = URL.canParse(given) ? new URL(given) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.search || url.hash) throw wrongUsage(`--upstream ${given}: write an address such as https://api.openai.com`);
  return url;
}

async function serve(given: Given, terminal: Terminal, upstream: URL, store?: Store): Promise<number> {
  const keys = new Set<string>();
  const say = (text: string): void => terminal.line(without(keys, text));
  const fetch = compactingFetch(optionsOf(given, say, store));
  const server = createServer((request, response) => void forwarded({ request, response, upstream, fetch, keys, say }));
  // A model may think for long before it says anything.
  server.requestTimeout = 0;
  const { host = HOST, port = PORT } = given;
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) => {
      const why = error.code === "EADDRINUSE" ? `port ${port} is taken: give another with --port` : error.message;
      reject(new Exit(EXIT.problems, `proxy: ${why}`, { cause: error }));
    });
    server.listen(port, host, resolve);
  });
  const address = server.address() as { port: number };
  const url = `http://${host.includes(":") ? `[${host}]` : host}:${address.port}`;
  terminal.object("proxy", { url, upstream: upstream.href });
  terminal.line(`${url} → ${upstream.href}`);
  terminal.line(terminal.paint("dim", `Set the agent's base URL to it: OPENAI_BASE_URL=${url}/v1 or ANTHROPIC_BASE_URL=${url}. Ctrl-C ends it.`));
  const code = await interrupted();
  server.closeAllConnections();
  server.close();
  await fetch.close();
  return code;
}

/** Resolves when the person or the system ends the run. */
function interrupted(): Promise<number> {
  process.removeAllListeners("SIGINT");
  return new Promise((resolve) => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => resolve(signal === "SIGINT" ? EXIT.interrupted : EXIT.fine));
  });
}

function optionsOf({ window, model, preset, thread }: Given, say: (text: string) => void, store?: Store): CompactingFetchOptions {
  return {
    logger: (level, message) => {
      if (level === "warn") say(message);
    },
    ...(window === undefined ? {} : { contextWindow: window }),
    ...(model === undefined ? {} : { model }),
    ...(preset === undefined ? {} : { preset }),
    ...(store === undefined ? {} : { store }),
    ...(thread === undefined ? {} : { thread: (_body: unknown, headers: Headers) => headers.get(thread) ?? undefined }),
  };
}

interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  upstream: URL;
  fetch: CompactingFetch;
  keys: Set<string>;
  say: (text: string) => void;
}

async function forwarded({ request, response, upstream, fetch, keys, say }: Exchange): Promise<void> {
  const started = Date.now();
  const { method = "GET", url = "/" } = request;
  // A query may have a key.
  const [path = "/"] = url.split("?", 1);
  const told = (what: string): void => say(`${method} ${path} ${what}, ${((Date.now() - started) / 1_000).toFixed(1)} s`);
  const control = new AbortController();
  response.once("close", () => {
    if (!response.writableEnded) control.abort();
  });
  try {
    const headers = headersOf(request, keys);
    const body = await bodyOf(request, method, headers);
    const answer = await fetch(target(upstream, url), { method, headers, ...body, redirect: "manual", signal: control.signal });
    const back: string[] = [];
    for (const [name, value] of answer.headers) if (!NOT_ANSWERED.has(name)) back.push(name, value);
    response.writeHead(answer.status, answer.statusText, back);
    response.flushHeaders();
    if (answer.body) await pipeline(Readable.fromWeb(answer.body as NodeStream), response, { signal: control.signal });
    else response.end();
    told(String(answer.status));
  } catch (error) {
    if (control.signal.aborted) return told("ended by the agent");
    const why = because(error);
    told(`failed: ${why}`);
    if (response.headersSent) return void response.destroy();
    const message = without(keys, `context-compactor proxy: ${upstream.origin} gave no answer: ${why}`);
    response.writeHead(502, { "content-type": "application/json" }).end(JSON.stringify({ type: "error", error: { type: "api_error", code: "bad_gateway", message } }));
  }
}

/** The upstream's address of what was asked for. */
function target(upstream: URL, path: string): string {
  return `${upstream.origin}${upstream.pathname.replace(/\/$/, "")}${path.startsWith("/") ? path : `/${path}`}`;
}

/** Headers whose values nobody is shown. */
const SECRET = /^(?:authorization|cookie|.*(?:key|token|secret).*)$/i;

function headersOf({ rawHeaders }: IncomingMessage, keys: Set<string>): Headers {
  const headers = new Headers();
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const [name = "", value = ""] = [rawHeaders[at], rawHeaders[at + 1]];
    if (NOT_ASKED.has(name.toLowerCase())) continue;
    headers.append(name, value);
    const secret = value.replace(/^\w+ /, "");
    if (SECRET.test(name) && secret.length >= 8) keys.add(secret);
  }
  return headers;
}

/** The text of a body that may be compacted; any other as a stream. */
async function bodyOf(request: IncomingMessage, method: string, headers: Headers): Promise<{ body?: string | ReadableStream; duplex?: "half" }> {
  if (method === "GET" || method === "HEAD") return {};
  if (!/json/.test(headers.get("content-type") ?? "") || headers.has("content-encoding")) return { body: Readable.toWeb(request) as unknown as ReadableStream, duplex: "half" };
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return { body: Buffer.concat(pieces).toString() };
}

/** A text without the keys that were sent. */
function without(keys: ReadonlySet<string>, text: string): string {
  let shown = text;
  for (const key of keys) shown = shown.replaceAll(key, "[key]");
  return shown;
}

/** `fetch` says only that it failed, and why in the cause. */
function because(error: unknown): string {
  const { cause, message } = error as { cause?: { code?: string; message?: string }; message?: string };
  return cause?.message || cause?.code || message || String(error);
}
