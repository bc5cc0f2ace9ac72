/** Entry `context-compactor/commands`: the commands of a chat, such as `/compact`. */

export { chatCommand, COMMANDS, isChatCommand } from "../commands.js";
export type { CommandAnswer } from "../types.js";
