import { defineConfig } from "vite";

export default defineConfig({
  // Relative, so that the built site works from any folder.
  base: "./",
  // The engine is part of the bundle, as base64: over the size at which Vite warns.
  build: { target: "es2022", chunkSizeWarningLimit: 2_000 },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
});
