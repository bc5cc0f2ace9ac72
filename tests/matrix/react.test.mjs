/** The parts of a page in every major of React, the older ones of which npm installs. */

process.env.CC_MAJORS = "all";
await import("../browser/ui.test.mjs");
