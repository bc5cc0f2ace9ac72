import { sizes } from "./size.mjs";

export const title = "Sizes of the package (bytes)";

export async function run() {
  return Object.entries(await sizes()).map(([part, { raw, gzip, brotli }]) => ({ part, raw, gzip, brotli }));
}
