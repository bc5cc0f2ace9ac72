/** What people and programs see of a run. */

import process from "node:process";
import { styleText } from "node:util";
import { shortened } from "./said.js";

type Style = "bold" | "dim" | "red" | "green" | "yellow" | "cyan";
type Align = "left" | "right";

/** Writes the text for people, the JSON and the data of a run. */
export class Terminal {
  readonly #json: boolean;
  readonly #people: NodeJS.WriteStream;
  readonly #color: boolean;
  /** How many characters a line has; unlimited where nobody looks. */
  readonly columns: number;
  #spun = 0;
  #last = 0;

  /** `dataOut`: standard output is for data, so people read standard error. */
  constructor(json: boolean, dataOut: boolean) {
    this.#json = json;
    this.#people = dataOut ? process.stderr : process.stdout;
    this.#color = this.#people.isTTY && process.env["NO_COLOR"] === undefined && process.env["TERM"] !== "dumb";
    this.columns = this.#people.isTTY ? this.#people.columns : Infinity;
  }

  /** A line for people; none with `--json`. */
  line(text = ""): void {
    if (this.#json) return;
    this.done();
    this.#people.write(`${harmless(text)}\n`);
  }

  heading(text: string): void {
    this.line();
    this.line(this.paint("bold", text));
  }

  paint(style: Style, text: string): string {
    return this.#color ? styleText(style, text, { validateStream: false } as never) : text;
  }

  /** Rows with their columns under each other. What is too wide for the terminal is shortened where it is widest. */
  table(rows: readonly (readonly string[])[], align: readonly Align[] = [], indent = "  "): void {
    const widths: number[] = [];
    for (const row of rows) row.forEach((cell, at) => (widths[at] = Math.max(widths[at] ?? 0, widthOf(cell))));
    const room = this.columns - indent.length - 2 * (widths.length - 1);
    const sum = (): number => widths.reduce((total, width) => total + width, 0);
    while (sum() > room) {
      const widest = widths.indexOf(Math.max(...widths));
      if ((widths[widest] ?? 0) <= LEAST) break;
      widths[widest] = (widths[widest] ?? 0) - 1;
    }
    for (const row of rows) {
      const cells = row.map((cell, at) => {
        const width = widths[at] ?? 0;
        const text = widthOf(cell) > width ? shortened(cell, width) : cell;
        const blank = " ".repeat(Math.max(0, width - widthOf(text)));
        return align[at] === "right" ? blank + text : text + blank;
      });
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

/** How much more or less than the first. */
export function changeOf(value: number, first: number): string {
  const change = first === 0 ? 0 : Math.round((100 * (value - first)) / first);
  return change === 0 ? "0 %" : `${change < 0 ? "−" : "+"}${Math.abs(change)} %`;
}

/** No column is narrower than this for want of room. */
const LEAST = 12;

/** Characters that take two places of a terminal. */
const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/gu;

/** The places that a text takes. */
const widthOf = (text: string): number => [...text].length + (text.match(WIDE)?.length ?? 0);

/** A text without what would steer the terminal: only our own colors do. */
const harmless = (text: string): string => text.replace(/\x1b(?!\[\d{1,2}m)|[\0-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");

/** A bar of `width` characters. */
export function bar(part: number, whole: number, width: number): string {
  const filled = whole === 0 ? 0 : Math.min(width, Math.round((part / whole) * width));
  return "█".repeat(filled) + "░".repeat(width - filled);
}
