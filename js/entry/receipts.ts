/** Entry `context-compactor/receipts`: receipts of compactions, made of archives and checked by them. It needs no engine. */

export { compactionReceipts, verifyReceipt } from "../receipts.js";
export type { CompactionReceipt, ReceiptChange } from "../types/receipts.js";
