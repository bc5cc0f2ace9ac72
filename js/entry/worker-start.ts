/** The script of the worker that `context-compactor/worker` starts. */

import { serve } from "./worker-thread.js";

serve();
