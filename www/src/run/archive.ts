import type { ChatItem, Compaction, LogEntry, Offload, Sample, Setup } from "./types.js";
import type { Message } from "../engine.js";

/** What the page needs to show a session again; the session itself is in the library's own database. */
export interface RunRecord extends Setup {
  /** Only for an import: the recorded runs are files of the site. */
  messages?: Message[];
  entries: LogEntry[];
  samples: Sample[];
  offloads: Offload[];
  chat: ChatItem[];
}

const NAME = "context-compactor-demo";
let opening: Promise<IDBDatabase> | undefined;

function database(): Promise<IDBDatabase> {
  opening ??= new Promise((resolve, reject) => {
    const request = indexedDB.open(NAME, 2);
    request.onupgradeneeded = () => {
      // Runs of the first version do not say why their compactions came.
      for (const name of [...request.result.objectStoreNames]) request.result.deleteObjectStore(name);
      request.result.createObjectStore("runs");
      request.result.createObjectStore("compactions");
    };
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  return opening;
}

async function within<T>(
  mode: IDBTransactionMode,
  work: (store: (name: string) => IDBObjectStore) => IDBRequest<T>,
): Promise<T> {
  const transaction = (await database()).transaction(["runs", "compactions"], mode);
  const request = work((name) => transaction.objectStore(name));
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve(request.result);
    transaction.onabort = transaction.onerror = () => reject(transaction.error);
  });
}

const compactionsOf = (id: string) => IDBKeyRange.bound([id], [id, []]);

export async function loadRun(
  id: string,
): Promise<{ record: RunRecord; compactions: Compaction[] } | undefined> {
  const record = (await within("readonly", (store) => store("runs").get(id))) as RunRecord | undefined;
  if (!record) return undefined;
  const compactions = await within("readonly", (store) => store("compactions").getAll(compactionsOf(id)));
  return { record, compactions: compactions as Compaction[] };
}

export async function saveRun(id: string, record: RunRecord): Promise<void> {
  await within("readwrite", (store) => store("runs").put(record, id));
}

export async function saveCompaction(id: string, compaction: Compaction): Promise<void> {
  await within("readwrite", (store) => store("compactions").put(compaction, [id, compaction.number]));
}

export async function deleteRun(id: string): Promise<void> {
  await within("readwrite", (store) => {
    store("compactions").delete(compactionsOf(id));
    return store("runs").delete(id);
  });
}
