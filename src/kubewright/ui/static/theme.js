// Light theme, dark theme, or the system's. The choice is stored in the browser.

const KEY = "kubewright-theme";
const NEXT = { system: "light", light: "dark", dark: "system" };
const LABELS = { system: "Theme: as the system", light: "Theme: light", dark: "Theme: dark" };

export class Theme {
  constructor(button) {
    this.button = button;
    button.addEventListener("click", () => this.set(NEXT[this.name]));
    this.set(stored());
  }

  set(name) {
    this.name = name in NEXT ? name : "system";
    document.documentElement.dataset.theme = this.name;
    this.button.setAttribute("aria-label", LABELS[this.name]);
    this.button.title = LABELS[this.name];
    try {
      localStorage.setItem(KEY, this.name);
    } catch {
      // Without local storage, the page starts with the system's theme each time.
    }
  }

  next() {
    this.set(NEXT[this.name]);
  }
}

function stored() {
  try {
    return localStorage.getItem(KEY) ?? "system";
  } catch {
    return "system";
  }
}
