/** Entry `context-compactor/node`: what needs a file system, beside what the package's main entry has. */

export { fileStore, type FileStoreOptions } from "../store/file/node.js";
