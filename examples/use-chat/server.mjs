/** Serves the page, which `vite build` made, and the chat. `PORT=8080 npm start` for a port of your choice. */

import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { extname } from "node:path";
import { Readable } from "node:stream";
import { answer, messagesOf } from "./chat.mjs";

const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" };

/** A file of the page. */
async function file({ url }) {
  const { pathname } = new URL(url);
  const path = pathname === "/" ? "/index.html" : pathname;
  const found = await readFile(new URL(`dist${path}`, import.meta.url)).catch(() => undefined);
  return new Response(found ?? "not found", { status: found ? 200 : 404, headers: { "content-type": TYPES[extname(path)] ?? "text/plain" } });
}

async function respond(request) {
  if (new URL(request.url).pathname !== "/api/chat") return file(request);
  return request.method === "POST" ? answer(request) : messagesOf(request);
}

const server = createServer(async (incoming, outgoing) => {
  const { method, headers, url } = incoming;
  const body = method === "POST" ? { body: Readable.toWeb(incoming), duplex: "half" } : {};
  try {
    const response = await respond(new Request(new URL(url, `http://${headers.host}`), { method, headers, ...body }));
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    if (response.body) for await (const chunk of response.body) outgoing.write(chunk);
  } catch (error) {
    console.error(error);
    if (!outgoing.headersSent) outgoing.writeHead(500);
  }
  outgoing.end();
});

server.listen(Number(process.env.PORT ?? 3000), "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}`));
