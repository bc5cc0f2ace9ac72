/** The docs as a part of the demo's build: made when it is written, under `docs/`. */

import { inputs, makeSite } from "./site.mjs";

const FOLDER = "docs";

export function docs() {
  let script;
  return {
    name: "docs",
    apply: "build",
    buildStart() {
      script = this.emitFile({ type: "chunk", id: "src/docs/client.ts", name: "docs" });
      for (const path of inputs()) this.addWatchFile(path);
    },
    generateBundle(_, bundle) {
      const fileName = this.getFileName(script);
      const [style] = bundle[fileName].viteMetadata.importedCss;
      for (const [path, source] of makeSite({ script: `../${fileName}`, style: `../${style}` })) {
        this.emitFile({ type: "asset", fileName: `${FOLDER}/${path}`, source });
      }
    },
  };
}
