import { render } from "preact";
import { App } from "./app.js";
import { RunController } from "./run/controller.js";
import "context-compactor-ui/styles.css";
import "./styles/base.css";
import "./styles/first.css";
import "./styles/stage.css";
import "./styles/panels.css";
import "./styles/cost.css";

const root = document.getElementById("app");
if (root) {
  const run = new RunController();
  render(<App run={run} />, root);
  void run.start();
}
