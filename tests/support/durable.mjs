/** The store of Durable Objects inside workerd: the sources as they are, and with a mutant each. */

import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { build } from "esbuild";
import { ROOT } from "./bundle.mjs";
import { mutants } from "./durable-mutants.mjs";
import { startWorker } from "./worker.mjs";

const FOLDER = join(ROOT, "js/store/durable");
const names = Object.keys(mutants);

/** Modules `variant:N`: the store with the mutant of that number, `variant:-1` as it is. Each is a copy of the folder. */
const variants = {
  name: "variants",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^variant:/ }, ({ path }) => ({ path: join(FOLDER, "variant.ts"), namespace: path }));
    for (let n = -1; n < names.length; n++) {
      const namespace = `variant:${n}`;
      onResolve({ filter: /^\./, namespace }, ({ path }) => {
        const file = join(FOLDER, path).replace(/\.js$/, ".ts");
        return file.startsWith(FOLDER) ? { path: file, namespace } : { path: file };
      });
      onLoad({ filter: /./, namespace }, async ({ path }) => {
        if (basename(path) === "variant.ts") {
          const contents = `export { durableObjectStore } from "./store.js"; export { atomically } from "./tables.js";`;
          return { contents, loader: "ts" };
        }
        const source = await readFile(path, "utf8");
        const { file, from, to } = mutants[names[n]] ?? {};
        if (file !== basename(path)) return { contents: source, loader: "ts" };
        if (source.split(from).length !== 2) throw new Error(`${names[n]}: its text is not in ${file} once`);
        return { contents: source.replace(from, () => to), loader: "ts" };
      });
    }
  },
};

/** Starts workerd with `durable-worker.mjs`; see there for what it answers. */
export async function startDurable(options = {}) {
  const { outputFiles } = await build({
    stdin: {
      contents: `${Array.from({ length: names.length + 1 }, (_, i) => `import * as v${i} from "variant:${i - 1}";`).join("\n")}
        import { worker } from "./tests/support/durable-worker.mjs";
        export { Durable, WithoutSql } from "./tests/support/durable-worker.mjs";
        export default worker([${Array.from({ length: names.length + 1 }, (_, i) => `v${i}`).join(", ")}]);`,
      resolveDir: ROOT,
    },
    bundle: true,
    format: "esm",
    target: "es2022",
    plugins: [variants],
    write: false,
    logLevel: "error",
  });
  const code = outputFiles[0].text;
  const durableObjects = { DURABLE: { className: "Durable", useSQLite: true }, OLD: { className: "WithoutSql" } };
  const worker = await startWorker({ code, wasm: [] }, { durableObjects, r2Buckets: ["BIG"], ...options });
  let objects = 0;
  return {
    dispose: () => worker.dispose(),
    /** Names of the checks of a suite (`conformance`, `conformance with a bucket`, `protocol`), in order. */
    names: (suite) => ask(worker, { suite, names: true }),
    /** The error of one check on a fresh object, or undefined. `mutant` is a name, or undefined for the store itself. */
    async run(suite, check, mutant) {
      const object = `${objects++}`;
      for (let step = 0; ; step++) {
        const answer = await ask(worker, { suite, check, step, object, variant: names.indexOf(mutant) + 1 });
        if (answer.error !== undefined || answer.done) return answer.error;
      }
    },
    /** What the constructor throws on wrong objects: `{ code, message }` by case. */
    wrong: () => ask(worker, { wrong: true }),
  };
}

async function ask(worker, question) {
  const response = await worker.dispatchFetch("http://localhost/", { method: "POST", body: JSON.stringify(question) });
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  return JSON.parse(text);
}
