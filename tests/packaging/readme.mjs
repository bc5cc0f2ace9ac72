/** Programs in a README. */

/**
 * The code blocks in JavaScript or TypeScript of a Markdown text: `{ line, language, place, code }`. The fence says where a block
 * runs: `js node`, `js browser` or `js worker`; each is a complete program.
 */
export function programs(markdown) {
  const blocks = markdown.matchAll(/^```(js|ts|javascript|typescript|mjs)\b ?(.*)\n([\s\S]*?)^```$/gm);
  return [...blocks].map(({ 1: language, 2: place, 3: code, index }) => ({
    line: markdown.slice(0, index).split("\n").length,
    language,
    place: place.trim(),
    code,
  }));
}

/** The same program with a local server in place of every provider's. */
export function withEndpoint(code, url) {
  return code.replace(/https:\/\/api\.[a-z]+\.com(?=\/)/g, () => url);
}

/**
 * What a program says that it prints: the comment behind each `console.log`, up to a colon and an explanation. `…`
 * stands for any text, and values are written as in code. As an expression for the printed text, or undefined.
 */
export function promisedOutput(code) {
  const comments = [...code.matchAll(/^console\.log\(.*\); \/\/ (.+)$/gm)].map(([, comment]) => comment);
  if (comments.length === 0) return undefined;
  const patterns = comments.map((comment) => {
    const value = comment.startsWith("{") || comment.startsWith("[") ? comment : comment.split(":")[0];
    return value
      .split("…")
      .map((text) => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&").replace(/["']/g, "[\"']").replace(/\s+/g, "\\s+"))
      .join(".*?");
  });
  return new RegExp(`(?:^|\\n)${patterns.join("\\n(?:.*\\n)*?")}\\n`);
}
