import { defineConfig } from "vite";

// Modules wait at their top level for the session to open.
export default defineConfig({ build: { target: "esnext" } });
