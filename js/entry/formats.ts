/** Entry `context-compactor/formats`: how messages of other libraries are read and written, for the option `format`. */

export { bedrock } from "../formats/bedrock.js";
