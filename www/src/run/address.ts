/** Which session this tab shows: in the URL, so that a reload comes back to it, and remembered for the next visit. */

const KEY = "context-compactor-demo.session";

export function rememberedId(): string | undefined {
  const fromUrl = new URLSearchParams(location.hash.slice(1)).get("s");
  return fromUrl || read() || undefined;
}

export function remember(id: string): void {
  history.replaceState(null, "", `#s=${encodeURIComponent(id)}`);
  try {
    localStorage.setItem(KEY, id);
  } catch {
    // Storage may be switched off: the URL is enough for a reload.
  }
}

export function newId(): string {
  return `demo-${crypto.randomUUID()}`;
}

/** Two tabs must not play into one session. Resolves to false when another tab has it. */
export async function claim(id: string): Promise<boolean> {
  if (!navigator.locks) return true;
  return new Promise((resolve, reject) => {
    navigator.locks
      .request(`${KEY}.${id}`, { ifAvailable: true }, (lock) => {
        resolve(lock !== null);
        // Held until the tab closes or the session is given up.
        return lock === null ? undefined : new Promise<void>((release) => releases.set(id, release));
      })
      .catch(reject);
  });
}

const releases = new Map<string, () => void>();

export function release(id: string): void {
  releases.get(id)?.();
  releases.delete(id);
}

function read(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}
