/** The script of the worker that `context-compactor/worker` starts. The build makes one file of it, without `import()`, which
 *  not every bundler takes in a worker: so the engine is not there as code, too. */

import { bring } from "../host/addresses.js";
import { serve } from "../worker/serve.js";

bring();
serve();
