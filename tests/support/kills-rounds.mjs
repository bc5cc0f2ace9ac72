/** Kills of what is no browser: writers begin, are told of acknowledgements, are killed, and what they wrote is read. */

import { check, Told } from "./kills-check.mjs";
import { KILLS_OF_A_SESSION, Sum } from "./kills-sum.mjs";
import { generator } from "./random.mjs";
import { serve } from "./session.mjs";

/**
 * Kills `of` so many times, one writer or two at once. `begin(origin)` resolves to what is killed: `write(options)` starts
 * a writer, `kill(random)` ends all of them, `read(options)` is what `read` of `writer.mjs` finds, `end()` removes all
 * there is. As `killBrowser`.
 */
export async function killRounds(of, { kills, seed, version, name = "killed", progress = () => {} }, begin) {
  const random = generator(seed);
  const sum = new Sum(of, seed, version);
  let told = new Told();
  const posts = Object.entries(Told.posts(() => told));
  const server = await serve(Object.fromEntries(posts.map(([path, tell]) => [path, (body) => tell(JSON.parse(body))])));
  let victim;
  try {
    victim = await begin(server.origin);
    for (let nth = 0; nth < kills; nth++) {
      const session = `${name}${Math.floor(nth / KILLS_OF_A_SESSION)}`;
      if (nth % KILLS_OF_A_SESSION === 0) told = sum.begin();
      for (let writer = random(2); writer >= 0; writer--) {
        victim.write({ session, who: `w${nth}p${writer}`, seed: random(1 << 30) });
      }
      await told.more(4 + random(12));
      await new Promise((resolve) => setTimeout(resolve, random(200)));
      const what = await victim.kill(random);
      const after = `${session}/check/${nth}`;
      const since = told.acked.length;
      const found = await victim.read({ session, after });
      told.acked.push({ call: after, since });
      sum.add(check(found, told), `kill ${nth} (${what})`, Boolean(found.verified));
      progress(nth + 1, sum.counts());
    }
  } finally {
    await victim?.end();
    await server.close();
  }
  return sum;
}
