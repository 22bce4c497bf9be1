"""Of every family a manifest, `entries/*.yaml`, and the whole entry that `muster plan` makes of it, `*.entry.yaml`.

The entries are stable: whoever must change one changes what users' programs read.
"""

from pathlib import Path

_FOLDER = Path(__file__).with_name("entries")
_END = ".entry.yaml"

# Manifest and entry, by name.
ENTRIES = {
    name: ((_FOLDER / f"{name}.yaml").read_text(), path.read_text())
    for path in sorted(_FOLDER.glob(f"*{_END}"))
    for name in [path.name.removesuffix(_END)]
}
