import { readFileSync } from "node:fs";

/** A rung of the ladder, before the summary. The build makes its name of `Edit.kind` from the table; no preset has it yet. */
export default ({ kebab, snake, Pascal, words, Words }) => {
  const columns = /^\| summarize: .*$/m.exec(readFileSync(new URL("../../docs/presets.md", import.meta.url), "utf8"))?.[0].split(" |").length;
  const about = `${kebab}: old results that equal a newer one become a mark`;
  return {
    files: { [`crates/core/src/compaction/${snake}.rs`]: "rung.rs.txt", [`crates/core/tests/all/${snake}_rung.rs`]: "rung-test.rs.txt" },
    edits: [
      [
        "crates/core/src/policy/rung.rs",
        "before",
        "/// `S2.1`, `S2.4`",
        `    /// ${Words}.\n    ${Pascal} = "${kebab}", "${about}", "no"; //~ what it does (docs/presets.md has it too) and whether it asks a model`,
        new RegExp(`= "${kebab}"|^    ${Pascal} =`),
      ],
      ["crates/core/src/compaction/mod.rs", "sorted", /^(?:pub\(crate\) )?mod (\w+);$/, `mod ${snake};`],
      ["crates/core/src/compaction/due.rs", "within", /Rung::Offload \| (?=Rung::Summarise)/, `$&Rung::${Pascal} | `],
      ["crates/core/src/compaction/ladder.rs", "before", "Rung::Compress => ", `        Rung::${Pascal} => &super::${snake}::RUNG,`],
      ["crates/core/tests/all/main.rs", "sorted", /^mod (?!support)(\w+);$/, `mod ${snake}_rung;`],
      ["docs/presets.md", "before", "| compress: results are", `| ${about} | no |${"  |".repeat(columns - 3)}`],
    ],
    left: [
      ["crates/core/src/policy/presets.rs", "rungs: &[", "a preset that has it (then BLESS=1 writes docs/presets.md)"],
      ["crates/core/src/policy/resolve.rs", "const SWITCHES", `or the group of options that switches it on, with its rows in options.rs (${words})`],
    ],
  };
};
