/** Two databases of a browser as copies of each other: one is damaged, removed, or behind after a kill (D23). */

import { after, before, describe, test } from "node:test";
import { browsers } from "../support/browser.mjs";
import { Pairs } from "../support/pairs.mjs";
import { launch } from "../support/session.mjs";
import { call } from "../support/session-server.mjs";

const KILLS = Number(process.env.CC_KILLS ?? 3);

const pairs = new Pairs(call);
before(() => pairs.serve("mirror-page.mjs"));
after(() => pairs.close());

for (const name of browsers) {
  describe(name, () => {
    let session, page;
    before(async () => {
      session = await launch(name);
      page = await pairs.pages.openPage(session);
    });
    after(() => session?.close());

    test("D23: two databases pass the suite that every store passes", (t) => pairs.checkSuite(t, page, "pair"));

    for (const [at, copy] of ["first", "second"].entries()) {
      test(`D23: the ${copy} database is damaged table by table, then removed: all of it comes back, and it is told`, () => pairs.checkHurt(page, `${copy} hurt`, at));
    }

    test("D23: two tabs append over one pair of databases: each message is in both once, in its tab's order", async (t) => {
      const tabs = [page, await pairs.pages.openPage(session)];
      await pairs.checkTabs(t, tabs, "shared", "pair", 20);
      await pairs.checkSame(page, "shared");
      await tabs[1].close();
    });

    test(`D23: killed ${KILLS} times over two databases, of which one is removed then: acknowledged is stored`, (t) => pairs.checkKills(t, name, KILLS));
  });
}
