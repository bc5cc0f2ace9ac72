/** What people and programs see of a run. */

import process from "node:process";
import { styleText } from "node:util";

type Style = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";
type Align = "left" | "right";

/** Writes the text for people, the JSON and the data of a run. */
export class Terminal {
  readonly #json: boolean;
  readonly #people: NodeJS.WriteStream;
  readonly #color: boolean;
  #spun = 0;
  #last = 0;

  /** `dataOut`: standard output is for data, so people read standard error. */
  constructor(json: boolean, dataOut: boolean) {
    this.#json = json;
    this.#people = dataOut ? process.stderr : process.stdout;
    this.#color = this.#people.isTTY && process.env["NO_COLOR"] === undefined && process.env["TERM"] !== "dumb";
  }

  /** A line for people; none with `--json`. */
  line(text = ""): void {
    if (this.#json) return;
    this.done();
    this.#people.write(`${text}\n`);
  }

  heading(text: string): void {
    this.line();
    this.line(this.paint("bold", text));
  }

  paint(style: Style, text: string): string {
    return this.#color ? styleText(style, text, { validateStream: false } as never) : text;
  }

  /** Rows with their columns under each other. */
  table(rows: readonly (readonly string[])[], align: readonly Align[] = [], indent = "  "): void {
    const widths: number[] = [];
    for (const row of rows) row.forEach((cell, at) => (widths[at] = Math.max(widths[at] ?? 0, cell.length)));
    for (const row of rows) {
      const cells = row.map((cell, at) => (align[at] === "right" ? cell.padStart(widths[at] ?? 0) : cell.padEnd(widths[at] ?? 0)));
      this.line(`${indent}${cells.join("  ").trimEnd()}`);
    }
  }

  /** The one object of `--json`. */
  object(command: string, value: object): void {
    if (this.#json) process.stdout.write(`${JSON.stringify({ version: 1, command, ...value }, undefined, 2)}\n`);
  }

  /** What a program reads. */
  data(text: string): void {
    process.stdout.write(text);
  }

  /** What is being done, on a terminal. */
  progress(what: string): void {
    if (!process.stderr.isTTY || Date.now() - this.#last < 80) return;
    this.#last = Date.now();
    const frames = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏";
    process.stderr.write(`\r\x1b[K${frames[this.#spun++ % frames.length]} ${what}`);
  }

  /** Takes the progress away. */
  done(): void {
    if (this.#spun > 0) process.stderr.write("\r\x1b[K");
    this.#spun = 0;
  }
}

export const number = (value: number): string => Math.round(value).toLocaleString("en-US");
export const percent = (part: number, whole: number): string => `${whole === 0 ? 0 : Math.round((100 * part) / whole)} %`;
export const plural = (count: number, one: string, many = `${one}s`): string => `${number(count)} ${count === 1 ? one : many}`;
export const dollars = (value: number): string => `$${value.toFixed(value < 0.1 ? 4 : 2)}`;

/** A bar of `width` characters. */
export function bar(part: number, whole: number, width: number): string {
  const filled = whole === 0 ? 0 : Math.min(width, Math.round((part / whole) * width));
  return "█".repeat(filled) + "░".repeat(width - filled);
}
