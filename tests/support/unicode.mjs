/** Random texts that look for trouble: characters that rules tell apart, runs, words, and any code point. */

/** What Unicode 17 has and 16 has not, of letters, marks and numbers. */
const young =
  /[\u0295\u088f\u0c5c\u0cdc\u1acf-\u1add\u1ae0-\u1aeb\ua7ce\ua7cf\ua7d2\ua7d4\ua7f1\u{10940}-\u{10959}\u{10ec5}-\u{10ec7}\u{10efa}\u{10efb}\u{11b60}-\u{11b67}\u{11db0}-\u{11ddb}\u{11de0}-\u{11de9}\u{16ea0}-\u{16eb8}\u{16ebb}-\u{16ed3}\u{16ff2}-\u{16ff6}\u{187f8}-\u{187ff}\u{18d09}-\u{18d1e}\u{18d80}-\u{18df2}\u{1e6c0}-\u{1e6de}\u{1e6e0}-\u{1e6f5}\u{1e6fe}\u{1e6ff}\u{2b73a}-\u{2b73f}\u{2cea2}-\u{2cead}\u{323b0}-\u{33479}]/u;

/**
 * Whether JavaScript's expressions may cut a text otherwise than those of tiktoken, which are Rust's: their `\s` has U+FEFF
 * and not U+0085, and they follow the host's version of Unicode, where tiktoken's is 16.
 */
export function isHostsOwn(text) {
  if (/[\ufeff\u0085]/.test(text) || young.test(text)) return true;
  return Number.parseInt(process.versions.unicode) < 16 && /\p{Cn}/u.test(text);
}

const telling = [..." \t\r\n\u0085\u00a0\u2028\u3000\ufeff'/!.-=aAzZsSlLrRvVeEdDmMtT0９Ⅳǅʰªſ字ア가אا😀\u0301\u094d\u200d\ufe0f", "\n\n", "'ll", "'VE", "  "];
const scripts = [0x41, 0x61, 0xc0, 0x370, 0x410, 0x5d0, 0x620, 0x905, 0xe01, 0x1100, 0x3041, 0x30a1, 0x4e00, 0xac00, 0x1f300];

/** A text of up to some hundred characters; `random(n)` is an integer in 0..n. */
export function random(random) {
  let text = "";
  for (let parts = random(12); parts >= 0; parts--) {
    switch (random(6)) {
      case 0:
        text += telling[random(telling.length)].repeat(1 + random(random(10) === 0 ? 200 : 4));
        break;
      case 1:
        text += anyCharacter(random);
        break;
      case 2:
        text += String(random(1_000_000));
        break;
      default: {
        const first = scripts[random(scripts.length)];
        if (random(2)) text += " ";
        for (let letters = random(9); letters >= 0; letters--) text += String.fromCodePoint(first + random(26));
        if (random(4) === 0) text += telling[random(telling.length)];
      }
    }
  }
  return text;
}

function anyCharacter(random) {
  const code = random(random(2) ? 0x3000 : 0x110000);
  return code >= 0xd800 && code < 0xe000 ? "\ufffd" : String.fromCodePoint(code);
}
