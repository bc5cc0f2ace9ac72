/** Entry `context-compactor/commands`: the commands of a chat, such as `/compact`. */

export { chatCommand, COMMANDS, isChatCommand, type CommandAnswer } from "../commands.js";
