/** A worker of an app: its sessions are in files, in the folder that it is given. */

import { workerData } from "node:worker_threads";
import { fileStore } from "context-compactor/node";
import { serve } from "context-compactor/worker-thread";

serve(workerData?.folder ? { store: fileStore(workerData.folder) } : {});
