import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";
import { docs } from "./docs/plugin.mjs";

export default defineConfig({
  // An address without a page is an error, not the demo.
  appType: "mpa",
  plugins: [docs()],
  // Relative, so that the built site works from any folder.
  base: "./",
  // The engine is part of the bundle, as base64: over the size at which Vite warns.
  build: { target: "es2022", chunkSizeWarningLimit: 2_000 },
  // The parts of the package for React run in Preact.
  resolve: { alias: [{ find: /^react$/, replacement: fileURLToPath(new URL("./src/react.ts", import.meta.url)) }] },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
});
