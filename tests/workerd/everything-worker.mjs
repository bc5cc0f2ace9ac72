/** A Worker that runs `everything` on the messages that it is sent. */

import * as library from "../support/library.mjs";
import { everything } from "../support/everything.mjs";

export default {
  async fetch(request) {
    return Response.json(await everything(library, await request.json()));
  },
};
