import { defineConfig } from "vite";

export default defineConfig({
  // Relative, so that the built site works from any folder.
  base: "./",
  build: { target: "es2022" },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
});
