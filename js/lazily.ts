/** What is made when somebody asks for it. */

/** `object` with a property that `make` makes when it is first read. Else it is a property as any other: it can be set, copied
 *  and listed. It keeps its place among them. */
export function lazily<T extends object, K extends keyof T>(object: T, name: K, make: () => T[K]): T {
  const set = (value: T[K]) => Object.defineProperty(object, name, { configurable: true, enumerable: true, writable: true, value });
  const get = () => set(make())[name];
  return Object.defineProperty(object, name, { configurable: true, enumerable: true, get, set });
}
