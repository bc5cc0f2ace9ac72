const dark = matchMedia("(prefers-color-scheme: dark)");
const current = () => document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light");
const other = () => (current() === "dark" ? "light" : "dark");

const SUN = '<circle cx="8" cy="8" r="3"/><path d="M8 1.5v1.6M8 12.9v1.6M1.5 8h1.6M12.9 8h1.6M3.4 3.4l1.1 1.1M11.5 11.5l1.1 1.1M12.6 3.4l-1.1 1.1M4.5 11.5l-1.1 1.1"/>';
const MOON = '<path d="M13.3 9.6A5.6 5.6 0 0 1 6.4 2.7a5.6 5.6 0 1 0 6.9 6.9Z"/>';

/** The button between light and dark. The choice is the demo's, too. */
export function themeButton(button: HTMLButtonElement): void {
  const show = () => {
    button.setAttribute("aria-label", `Use the ${other()} theme`);
    button.innerHTML = `<svg viewBox="0 0 16 16" width="16" height="16" fill="none" stroke="currentColor" stroke-width="1.5" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">${current() === "dark" ? SUN : MOON}</svg>`;
  };
  button.addEventListener("click", () => {
    const theme = other();
    document.documentElement.dataset.theme = theme;
    try {
      localStorage.setItem("theme", theme);
    } catch {
      // The choice lasts until the page is left.
    }
    show();
  });
  dark.addEventListener("change", show);
  show();
  button.hidden = false;
}
