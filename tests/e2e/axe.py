"""What machines find wrong for people who see little: axe-core, and the contrast of text in charts.

axe-core is fetched once from the npm registry into a cache, never committed. It takes the colour of text in
SVG from another property than the one that paints it, so charts are measured here.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

VERSION = "4.14.1"
# As the registry states it for this version.
_SHA512 = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
_TIMEOUT_S = 60
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
_SERIOUS = ("serious", "critical")


def cached() -> Path:
    """Where the script lies, or will lie."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "compilewatch-tests" / f"axe-core-{VERSION}.min.js"


def axe_source() -> str:
    """The script. Skips the test, with the command to type, where it is neither cached nor to be had."""
    path = cached()
    if not path.exists():
        command = ["npm", "pack", "--silent", f"axe-core@{VERSION}"]
        try:
            _fetch(command, path)
        except (OSError, subprocess.SubprocessError) as error:
            reason = f"needs axe-core in {path}; with npm and a registry: {' '.join(command)}"
            pytest.skip(f"{reason} ({type(error).__name__})")
    return path.read_text(encoding="utf-8")


def _fetch(command: list[str], path: Path) -> None:
    npm = shutil.which(command[0])
    if npm is None:
        raise FileNotFoundError(command[0])
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([npm, *command[1:]], cwd=folder, check=True, capture_output=True, timeout=_TIMEOUT_S)
        (package,) = Path(folder).glob("*.tgz")
        content = package.read_bytes()
    found = b64encode(hashlib.sha512(content).digest()).decode()
    assert found == _SHA512, f"the registry sent another axe-core {VERSION} than is expected"
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        script = archive.extractfile("package/axe.min.js")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(script.read())


def serious(page: Page, source: str) -> list[str]:
    """What axe finds on the page that is serious or critical, a line per place."""
    page.evaluate(source)
    found: dict[str, Any] = page.evaluate(
        # Vega keeps an empty group where no mark is, such as what a hover lights up: nothing to describe.
        "(rules) => axe.run({include: document, exclude: ['g:empty']}, "
        "{runOnly: {type: 'tag', values: rules}, resultTypes: ['violations']})",
        _RULES,
    )
    return [
        f"{violation['id']}: {node['target'][0]}: {node['html'][:160]}: {node['failureSummary'][:240]}"
        for violation in found["violations"]
        if violation["impact"] in _SERIOUS
        for node in violation["nodes"]
    ]


LEAST_CONTRAST = 4.5
"""Of text against what lies under it, by WCAG 2.2, 1.4.3."""

# The painted colour of every text in a chart against the grounds and marks under its middle. Relative
# luminance and contrast as WCAG 2.2 defines them.
_FAINT = """
(least) => {
    const parsed = (text) => {
        const found = text.match(/rgba?\\(([^)]+)\\)/);
        if (!found) return null;
        const [r, g, b, a = 1] = found[1].split(/[, /]+/).map(Number);
        return [r, g, b, a];
    };
    const over = (top, under) => [0, 1, 2].map((n) => top[n] * top[3] + under[n] * (1 - top[3]));
    const luminance = (colour) => {
        const [r, g, b] = colour.map((part) => part / 255)
            .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const opacity = (at, root) => at === root ? 1
        : Number(getComputedStyle(at).opacity) * opacity(at.parentElement, root);
    const painted = (at, root) => {
        const look = getComputedStyle(at);
        const fill = parsed(look.fill);
        return fill && [...fill.slice(0, 3), fill[3] * Number(look.fillOpacity) * opacity(at, root)];
    };
    const page = (at) => {
        const own = at ? parsed(getComputedStyle(at).backgroundColor) : [255, 255, 255, 1];
        return own && own[3] === 1 ? own : over(own || [0, 0, 0, 0], page(at.parentElement));
    };
    const reachable = document.head.appendChild(document.createElement("style"));
    reachable.textContent = "svg.marks *{pointer-events:auto!important}";
    const faint = [];
    for (const text of document.querySelectorAll("svg.marks text")) {
        const root = text.closest("svg");
        const ink = painted(text, root);
        if (!text.textContent.trim() || !ink || !ink[3]) continue;
        text.scrollIntoView({block: "center"});
        const box = text.getBoundingClientRect();
        const stack = document.elementsFromPoint(box.x + box.width / 2, box.y + box.height / 2);
        const ground = stack.slice(stack.indexOf(text) + 1).reverse()
            .filter((at) => at instanceof SVGGeometryElement && root.contains(at))
            .map((at) => painted(at, root)).filter(Boolean)
            .reduce((under, top) => over(top, under), page(root));
        const [dark, light] = [luminance(over(ink, ground)), luminance(ground)].sort((a, b) => a - b);
        const contrast = (light + 0.05) / (dark + 0.05);
        if (contrast < least) faint.push(`chart text: ${text.textContent}: contrast ${contrast.toFixed(2)}`);
    }
    reachable.remove();
    return faint;
}
"""


def faint(page: Page) -> list[str]:
    """The texts in charts whose contrast is below `LEAST_CONTRAST`, a line each."""
    found: list[str] = page.evaluate(_FAINT, LEAST_CONTRAST)
    return found
