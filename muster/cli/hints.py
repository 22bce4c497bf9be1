"""What to do with input that is no manifest yet: Helm charts and templates, kustomizations, URLs."""

from __future__ import annotations

from pathlib import Path

_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")


def source_hint(name: str, path: Path) -> str:
    """What to do with a URL, a chart, or a kustomization; "" for anything else."""
    if name.startswith(("http://", "https://")):
        return f"plan does not download; use: curl -sSfL {name} | muster plan -f -"
    if path.name in _KUSTOMIZATIONS:
        return f"a kustomization; render it first: kubectl kustomize {path.parent} | muster plan -f -"
    if path.is_dir() and any((path / one).is_file() for one in _KUSTOMIZATIONS):
        return f"a kustomization; render it first: kubectl kustomize {name} | muster plan -f -"
    if path.is_dir() and (path / "Chart.yaml").is_file():
        return f"a Helm chart; render it first: helm template {name} | muster plan -f -"
    return ""


def rendering_hint(text: str) -> str:
    """What to add to the error of a text that looks like a Helm template; "" for any other text."""
    if "{{" not in text:
        return ""
    return '; "{{" looks like a Helm template: render it first: helm template CHART | muster plan -f -'
