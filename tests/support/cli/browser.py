"""A real browser that looks at a page: headless Chromium, at any width, light or dark, with and without scripts."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from hack.testbed import PATIENCE
from tests.support.cli.chromium import AXE, Browser

WIDTHS = {"phone": 360, "tablet": 768, "desktop": 1280}
"""CSS pixels."""

_SWITCHES = (
    "--headless=new",
    # Only this test's own pages are opened, and a container's root has no user namespaces.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--hide-scrollbars",
    # Whatever is elsewhere does not exist.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
_AXE_RUN = """
const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ["violations", "incomplete"]}).then(
  (found) => done(found.violations.map((one) => `${one.id}: ${one.help}: ` + one.nodes.map((n) => n.html).join(" | "))),
  (error) => done([String(error)]));
"""


class Window:
    """What a person does with the page, and sees of it."""

    def __init__(self, driver: Chrome, source: str) -> None:
        self.driver = driver
        self._axe = source

    def look(self, width: int, scheme: str = "light", *, height: int = 800, scripts: bool = True) -> None:
        """Have the window that wide, prefer this colour scheme, and run scripts or not."""
        self._tell("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self._tell("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self._tell("Emulation.setScriptExecutionDisabled", value=not scripts)

    def open(self, url: str) -> None:
        """Open an address."""
        self.driver.get(url)

    def run(self, script: str, *arguments: object) -> Any:  # noqa: ANN401 - whatever the script returns
        """What a script returns; it sees the page's elements, and not the page's own script."""
        return self.driver.execute_script(script, *arguments)

    def violations(self) -> list[str]:
        """What axe-core finds wrong."""
        if not self.run("return typeof axe === 'object'"):
            self.run(self._axe)
        return list(self.driver.execute_async_script(_AXE_RUN))

    def too_wide(self) -> list[str]:
        """How wide the page is, and what makes it so, where it is wider than the window; else nothing."""
        return list(
            self.run(
                "const whole = document.documentElement;"
                "return whole.scrollWidth <= whole.clientWidth ? [] : [`${whole.scrollWidth} wide`,"
                " ...[...document.querySelectorAll('body *')].filter((one) => !one.firstElementChild)"
                ".filter((one) => one.scrollWidth > one.clientWidth)"
                ".map((one) => one.outerHTML.slice(0, 120))];"
            )
        )

    def said(self) -> list[str]:
        """What the browser complains of since it was last asked: scripts that fail, and what the CSP forbids."""
        return [entry["message"] for entry in self.driver.get_log("browser")]  # type: ignore[no-untyped-call]

    def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        for key in keys:
            ActionChains(self.driver).send_keys(key).perform()

    def tab(self) -> dict[str, Any]:
        """Press Tab, and say what has the focus: its text, its href, whether it is in the window, and its outline."""
        self.press(Keys.TAB)
        return self.focused()

    def focused(self) -> dict[str, Any]:
        """What has the focus."""
        return dict(
            # The window follows the focus before the next picture is drawn.
            self.driver.execute_async_script(
                "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => {"
                "const one = document.activeElement, box = one.getBoundingClientRect(), how = getComputedStyle(one);"
                " done({tag: one.tagName, id: one.id, text: one.textContent.trim().replace(/\\s+/g, ' '),"
                " href: one.getAttribute('href'), outline: how.outlineStyle, width: parseFloat(how.outlineWidth),"
                " seen: box.width > 0 && box.left >= 0 && box.top >= 0 && box.bottom <= innerHeight}); }));"
            )
        )

    def text(self, selector: str = "body") -> str:
        """What a reader sees of an element."""
        return str(self.run("return document.querySelector(arguments[0]).innerText", selector))

    def wait(self, condition: Callable[[], object]) -> None:
        """Wait until that holds; TimeoutException when it does not."""
        WebDriverWait(self.driver, PATIENCE, poll_frequency=0.05).until(lambda _: condition())

    def picture(self, path: Path, *, whole: bool = True) -> None:
        """Keep what is seen as PNG: the whole page, or the window alone."""
        if whole:
            width, height = self.run("return [innerWidth, document.documentElement.scrollHeight]")
            self._tell(
                "Emulation.setDeviceMetricsOverride",
                width=width,
                height=height,
                deviceScaleFactor=1,
                mobile=width < 600,
            )
        self.driver.get_screenshot_as_file(str(path))

    def _tell(self, command: str, **parameters: object) -> None:
        self.driver.execute_cdp_cmd(command, parameters)


@contextmanager
def window(folder: Path) -> Iterator[Window]:
    """A browser that keeps its things in this folder."""
    browser, source = Browser.ensured(print), AXE.ensured(print).read_text()
    options = ChromeOptions()
    options.binary_location = str(browser.program)
    for switch in (*_SWITCHES, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    environment = {**os.environ, **browser.environment, "HOME": str(folder)}
    service = Service(str(browser.driver), env=environment, log_output=str(folder / "driver.log"))
    driver = Chrome(options, service)
    try:
        driver.set_page_load_timeout(PATIENCE)
        driver.set_script_timeout(PATIENCE)
        yield Window(driver, source)
    finally:
        driver.quit()
