/** Whether the browser keeps this site's data when space runs out: one answer for all databases of a page. */

let asked: Promise<boolean | undefined> | undefined;

/** Asks the browser to keep them, once in a page. Firefox leaves the promise pending until the user answers. */
export function askToPersist(): void {
  asked ??= manager((storage) => storage.persist());
}

/** What the browser answered, or what holds as long as it was not asked; `undefined` where it does not say. */
export function isPersisted(): Promise<boolean | undefined> {
  return asked ?? manager((storage) => storage.persisted());
}

async function manager(use: (storage: StorageManager) => Promise<boolean>): Promise<boolean | undefined> {
  try {
    return await use(navigator.storage);
  } catch {
    // Some places have no storage manager, and some refuse.
    return undefined;
  }
}
