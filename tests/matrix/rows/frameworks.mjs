/** Frameworks: a page that runs in the browser, one without the package to compare with, and what answers on the server. */

import { large, missing, NODE } from "./texts.mjs";

const BARE = "/bare";

const answers = "Response.json(await app(library))";
const imports = (up) => `import * as library from "context-compactor";\nimport { app } from "${up}app.mjs";\n`;
const bareImports = (up) => `import { scripts } from "${up}app.mjs";\n`;
/** Effects run twice in development. */
const begins = "globalThis.began ??= app(library).then((found) => (globalThis.result = found))";
const bareBegins = "globalThis.result ??= { first: scripts() }";

const react = { react: "19.2.0", "react-dom": "19.2.0" };
const component = (imports, does) => `import { useEffect } from "react";
${imports}export default function Page() {
  useEffect(() => void (${does}), []);
  return null;
}
`;

const client = '"use client";\n';
const dynamic = 'export const dynamic = "force-dynamic";\n';
const route = `${imports("../../")}${dynamic}export const GET = async () => ${answers};\n`;

/** Four places of one app, built and in development. */
function next(version, engines, warnings) {
  const program = [NODE, "node_modules/next/dist/bin/next"];
  const build = [...program, "build"];
  const serves = { build: [...program, "start", "--port", "PORT"], dev: [...program, "dev", "--port", "PORT"] };
  const cases = {};
  for (const [mode, serve] of Object.entries(serves)) {
    const [page, rsc, node, edge] = engines[mode];
    cases[`client page, ${mode}`] = { ...(mode === "build" && { build, bare: BARE, warnings }), serve, engine: page };
    cases[`server component, ${mode}`] = { serve, path: "/rsc", asks: true, engine: rsc };
    cases[`Node route, ${mode}`] = { serve, path: "/node", asks: true, engine: node };
    cases[`edge route, ${mode}`] = { serve, path: "/edge", asks: true, engine: edge };
  }
  return {
    packages: { next: version, ...react },
    files: {
      "app/layout.js": 'export default ({ children }) => <html><head><link rel="icon" href="data:," /></head><body>{children}</body></html>;\n',
      "app/page.js": client + component(imports("../"), begins),
      "app/bare/page.js": client + component(bareImports("../../"), bareBegins),
      "app/rsc/page.js": `${imports("../../")}${dynamic}export default async function Page() {
  return <pre dangerouslySetInnerHTML={{ __html: JSON.stringify(await app(library)) }} />;
}
`,
      "app/node/route.js": route,
      "app/edge/route.js": `${route}export const runtime = "edge";\n`,
    },
    cases,
  };
}

/** What Next says of every edge route. */
const edge = [
  '⚠ The Edge Runtime is deprecated. You can use the "nodejs" runtime instead. Learn more: https://nextjs.org/docs/messages/edge-runtime-deprecated',
  "⚠ Using edge runtime on a page currently disables static generation for that page",
];

const router = [NODE, "node_modules/@react-router/dev/bin.js"];
const routerServer = [NODE, "node_modules/@react-router/serve/bin.js", "build/server/index.js"];
const routerDev = [...router, "dev", "--port", "PORT"];

/** What the build warns of where it is not said. */
const future = Object.fromEntries(["middleware", "splitRouteModules", "viteEnvironmentApi", "passThroughRequests", "trailingSlashAwareDataRequests"].map((flag) => [`v8_${flag}`, true]));

/** Vite moves packages in development, and these servers answer with no page what is not there. */
const unmoved = missing("/node_modules");

const kit = [NODE, "node_modules/vite/bin/vite.js"];
const kitServer = [NODE, "build/index.js"];
const mounted = (imports, does) => `<script>\nimport { onMount } from "svelte";\n${imports}onMount(() => void (${does}));\n</script>\n`;
const kitDev = [...kit, "--strictPort", "--port", "PORT"];

export const FRAMEWORKS = {
  "Next 15": next("15.5.29", { build: ["file", "code", "code", "module"], dev: ["file", "code", "code", "module"] }, edge.slice(1)),
  "Next 16": next("16.4.6", { build: ["file", "code", "file", "module"], dev: ["file", "code", "file", "module"] }, edge),
  "React Router 7": {
    packages: { "react-router": "7.18.4", "@react-router/dev": "7.18.4", "@react-router/node": "7.18.4", "@react-router/serve": "7.18.4", isbot: "5.2.3", vite: "7.3.8", ...react },
    files: {
      "vite.config.js": 'import { reactRouter } from "@react-router/dev/vite";\nexport default { plugins: [reactRouter()] };\n',
      "react-router.config.js": `export default { future: ${JSON.stringify(future)} };\n`,
      "app/root.jsx": `import { Outlet, Scripts } from "react-router";
export default () => <html><head><link rel="icon" href="data:," /></head><body><Outlet /><Scripts /></body></html>;
`,
      "app/routes.js": `import { index, route } from "@react-router/dev/routes";
export default [index("./page.jsx"), route("bare", "./bare.jsx"), route("node", "./node.js")];
`,
      "app/page.jsx": component(imports("../"), begins),
      "app/bare.jsx": component(bareImports("../"), bareBegins),
      "app/node.js": `${imports("../")}export const loader = async () => ${answers};\n`,
    },
    cases: {
      "page, build": { build: [...router, "build"], serve: routerServer, bare: BARE, engine: "file", warnings: large.vite },
      "server, build": { serve: routerServer, path: "/node", asks: true, engine: "file" },
      "page, dev": { serve: routerDev, reloads: 2, engine: "code", console: unmoved },
      "server, dev": { serve: routerDev, path: "/node", asks: true, engine: "file" },
    },
  },
  "SvelteKit 2": {
    packages: { "@sveltejs/kit": "2.70.4", svelte: "5.57.3", "@sveltejs/vite-plugin-svelte": "6.2.4", "@sveltejs/adapter-node": "5.5.7", vite: "7.3.8" },
    files: {
      "vite.config.js": 'import { sveltekit } from "@sveltejs/kit/vite";\nexport default { plugins: [sveltekit()] };\n',
      "svelte.config.js": 'import adapter from "@sveltejs/adapter-node";\nexport default { kit: { adapter: adapter() } };\n',
      "src/app.html": '<!doctype html><html><head><link rel="icon" href="data:,">%sveltekit.head%</head><body><div>%sveltekit.body%</div></body></html>\n',
      "src/routes/+page.svelte": mounted(imports("../../"), begins),
      "src/routes/bare/+page.svelte": mounted(bareImports("../../../"), bareBegins),
      "src/routes/node/+server.js": `${imports("../../../")}export const GET = async () => ${answers};\n`,
    },
    cases: {
      "page, build": { build: [...kit, "build"], serve: kitServer, bare: BARE, engine: "file", warnings: large.vite },
      "server, build": { serve: kitServer, path: "/node", asks: true, engine: "file" },
      "page, dev": { serve: kitDev, reloads: 2, engine: "code", console: unmoved },
      "server, dev": { serve: kitDev, path: "/node", asks: true, engine: "file" },
    },
  },
};
