/** Packages that this one does not depend on: what few commands need. */

import { createRequire } from "node:module";
import { join } from "node:path";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { wrongUsage } from "./exit.js";

/** Loads a package, or a part of it: one that is installed beside this package, else in the folder where the command was given. */
export async function besides<T>(wanted: string, option: string, command: string): Promise<T> {
  try {
    return (await import(wanted)) as T;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
  }
  try {
    const path = createRequire(join(process.cwd(), "here.js")).resolve(wanted);
    return (await import(pathToFileURL(path).href)) as T;
  } catch (cause) {
    const [name] = wanted.split("/");
    throw Object.assign(wrongUsage(`${option} needs the package ${name}: npx -p context-compactor -p ${name} context-compactor ${command} …`), { cause });
  }
}
