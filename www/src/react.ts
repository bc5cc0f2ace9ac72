/** What the parts of `context-compactor-ui/react` use of React, as Preact has it. */
export { createElement, type VNode as ReactElement } from "preact";
export { useEffect, useState } from "preact/hooks";
