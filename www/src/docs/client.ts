/** What the docs can do with JavaScript: search, the theme, and copying code. Without it they can be read all the same. */

import "./docs.css";
import { copyButtons } from "./copy.js";
import { search } from "./search.js";
import { themeButton } from "./theme.js";

copyButtons();
themeButton(document.querySelector<HTMLButtonElement>("#theme")!);
search(document.querySelector<HTMLFormElement>("form.search")!, document.body.dataset.index!);
// The page that is read is in sight in a long list; where that is below the text, nothing moves.
const pages = document.querySelector<HTMLElement>(".pages")!;
const current = pages.querySelector<HTMLElement>("[aria-current]");
if (current && pages.scrollHeight > pages.clientHeight) pages.scrollTop = current.offsetTop - pages.clientHeight / 2;
