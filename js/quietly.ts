/** Listeners that throw. */

/** Tells a listener; what it throws does not end what it only watches. */
export function quietly(listener: () => void): void {
  try {
    listener();
  } catch (error) {
    // Reported as an uncaught error would be, without ending what the listener only watches.
    queueMicrotask(() => {
      throw error;
    });
  }
}
