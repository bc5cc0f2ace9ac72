import { sizes } from "./size.mjs";

export const title = "Sizes of the package (bytes)";

export function run() {
  return Object.entries(sizes()).map(([part, { raw, gzip, brotli }]) => ({ part, raw, gzip, brotli }));
}
