"""The machine's own apt, which checks signatures, kept to one folder: nothing is installed, and no root is needed."""

from pathlib import Path


def apt(
    program: str, home: Path, *, lists: Path | None = None, installed: bool = True, architecture: str = ""
) -> list[str]:
    """Return the beginning of a call of apt-get or apt-cache that writes nothing outside of `home`, nor of `lists`.

    It goes by the machine's lists of packages, or by those in `lists`, where `update` puts new ones. What is not to
    count as `installed` here, it downloads too. Archives come into `home/archives`, but for `download`. `architecture`
    is for packages of another one than the machine's, which need `lists` of their own.
    """
    (home / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    facts = {
        "Dir::Cache": home,
        "Dir::Cache::archives": "archives/",
        "Dir::Cache::pkgcache": "",
        "Dir::Cache::srcpkgcache": "",
        # Everything as who calls, not as apt's own user, whom a home folder may keep out.
        "APT::Sandbox::User": "root",
        "Acquire::Retries": 3,
    }
    if lists is not None:
        lists.mkdir(parents=True, exist_ok=True)
        facts["Dir::State::lists"] = lists
    if architecture:
        facts |= {"APT::Architecture": architecture, "APT::Architectures": architecture}
    if installed:
        # What is installed may be locked, and only by root.
        facts["Debug::NoLocking"] = 1
    else:
        status = home / "status"
        status.touch()
        facts["Dir::State::status"] = status
    return [program, *(word for name, value in facts.items() for word in ("-o", f"{name}={value}"))]
