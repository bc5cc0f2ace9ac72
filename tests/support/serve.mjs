/** A web server for tests: files of a folder, on a port of its own. */

import { createReadStream, statSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join, normalize, sep } from "node:path";

const types = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".mjs": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".json": "application/json",
  ".wasm": "application/wasm",
};

/**
 * Serves `folder`, and `pages`: texts of HTML by path. Resolves to `{ url, close }`; `url` ends without a slash.
 * Pages are cross-origin isolated with `isolated`.
 */
export function serve(folder, { pages = {}, isolated = false } = {}) {
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url, "http://localhost").pathname);
    const headers = isolated
      ? { "cross-origin-opener-policy": "same-origin", "cross-origin-embedder-policy": "require-corp" }
      : {};
    if (path in pages) {
      response.writeHead(200, { ...headers, "content-type": types[".html"] }).end(pages[path]);
      return;
    }
    const file = normalize(join(folder, path.endsWith("/") ? `${path}index.html` : path));
    const inside = file.startsWith(normalize(folder + sep));
    if (!inside || !statSync(file, { throwIfNoEntry: false })?.isFile()) {
      response.writeHead(404).end();
      return;
    }
    const type = types[extname(file)] ?? "application/octet-stream";
    response.writeHead(200, { ...headers, "content-type": type, "cache-control": "no-store" });
    createReadStream(file).pipe(response);
  });
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => {
      const close = () =>
        new Promise((done) => {
          server.close(done);
          server.closeAllConnections();
        });
      resolve({ url: `http://127.0.0.1:${server.address().port}`, close });
    });
  });
}
